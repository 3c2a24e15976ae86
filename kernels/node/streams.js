// stdin, stdout and stderr of the interpreter.
//
// Text goes straight to fds 1 and 2, so that it is live and mixes well with what child processes
// write there. Node's own streams would put the pipes into non-blocking mode, for the children too.
// The agent reads two pipes, so before one stream is written after the other, a sync makes sure
// that the first has been read: the order of writing is the order of reading.
"use strict";

const { Console } = require("node:console");
const fs = require("node:fs");
const { Writable } = require("node:stream");
const { writeAll } = require("./channel");
const { ArrayBuffer, Buffer, Object, TypeError, process } = globalThis;

const MESSAGE = Symbol("message");
const NO_STDIN = "/dev/null";

// It keeps no state of its own: an interrupt may cut it off anywhere.
class Output extends Writable {
    #claim;

    constructor(fd, claim) {
        super();
        this.fd = fd;
        this.#claim = claim;
        this._type = "pipe";
        this._isStdio = true;
    }

    write(chunk, encoding, done) {
        if (typeof encoding === "function") [encoding, done] = ["utf8", encoding];
        this.#claim(this);
        writeAll(this.fd, bytesOf(chunk, encoding));
        if (typeof done === "function") process.nextTick(done);
        return true;
    }

    // The standard streams stay open.
    end(chunk, encoding, done) {
        const callback = [chunk, encoding, done].find((word) => typeof word === "function");
        if (typeof chunk !== "function" && chunk != null) this.write(chunk, encoding);
        if (callback) process.nextTick(callback);
        return this;
    }

    destroy() {
        return this;
    }
}

class Streams {
    #channel;
    // What was written last: a stream, a message (MESSAGE), or nothing that has an order to keep.
    #last;
    #stdin;
    hasStdin = false;

    constructor(channel) {
        this.#channel = channel;
        const claim = (stream) => this.#claim(stream);
        define("stdout", new Output(1, claim));
        define("stderr", new Output(2, claim));
        const get = () => (this.#stdin ??= openStdin());
        Object.defineProperty(process, "stdin", { configurable: true, enumerable: true, get });
        installConsole();
    }

    // A display was sent: what is written next must not be read before it.
    messageSent() {
        this.#last = MESSAGE;
    }

    beginRun() {
        this.#last = undefined;
    }

    attachStdin(path) {
        this.#reopenStdin(path);
        this.hasStdin = true;
    }

    detachStdin() {
        this.#forgetStdin();
        if (this.hasStdin || !isOpen(0)) this.#reopenStdin(NO_STDIN);
        this.hasStdin = false;
    }

    // Whether the run has looked for its stdin.
    get wasAsked() {
        return this.#stdin !== undefined;
    }

    #claim(stream) {
        if (this.#last === stream) return;
        const before = this.#last;
        this.#last = stream;
        if (before !== undefined) this.#channel.sync();
    }

    // The lowest free descriptor is the one that was just closed.
    #reopenStdin(path) {
        try {
            fs.closeSync(0);
        } catch {
            // the code has closed it
        }
        fs.openSync(path, "r");
    }

    #forgetStdin() {
        this.#stdin?.removeAllListeners();
        this.#stdin?.pause();
        this.#stdin = undefined;
    }
}

function isOpen(fd) {
    try {
        return fs.fstatSync(fd) !== undefined;
    } catch {
        return false;
    }
}

function define(name, value) {
    Object.defineProperty(process, name, { configurable: true, enumerable: true, value });
}

function openStdin() {
    const stdin = fs.createReadStream(null, { fd: 0, autoClose: false });
    stdin.ref = stdin.unref = () => stdin; // as a pipe of Node's own has them
    return stdin;
}

// The global console writes to our streams, and not to the inspector, which would keep what it is given.
function installConsole() {
    const { stdout, stderr } = process;
    const ours = new Console({ stdout, stderr, ignoreErrors: false });
    for (const name of Object.keys(console)) {
        if (name !== "Console" && typeof ours[name] === "function") console[name] = ours[name];
    }
}

function bytesOf(chunk, encoding) {
    if (typeof chunk === "string") return Buffer.from(chunk, encoding ?? "utf8");
    if (ArrayBuffer.isView(chunk)) {
        return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    }
    const error = new TypeError("a stream takes a string, a Buffer, a TypedArray or a DataView");
    error.code = "ERR_INVALID_ARG_TYPE";
    throw error;
}

module.exports = { Streams };
