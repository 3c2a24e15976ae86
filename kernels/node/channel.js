// Messages to and from the agent: 4 bytes of length, little endian, then JSON `{msg_type, content}`.
// They are read in a thread of their own (reader.js) and written here.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { MessageChannel, Worker } = require("node:worker_threads");
const { Word, Gate, Count } = require("./words");
const { plain } = require("./plain");
const { Atomics, Buffer, Int32Array, JSON, SharedArrayBuffer, process } = globalThis;

const LENGTH_BYTES = 4;
const FAILED = 1;
const CUT_OFF_MS = 200; // how long the end that the reader has announced may take to come

// limits::kDisplayMax of the agent, less the words around the data. A larger one is replaced by a note.
const MESSAGE_MAX = 8 * 1024 * 1024 - 4096;

class Channel {
    #fd;
    #words = new Int32Array(new SharedArrayBuffer(Count * Int32Array.BYTES_PER_ELEMENT));
    #syncs = 0;
    #port;

    // Only the code of a run waits for syncs: between runs nothing has an order to keep.
    inRun = false;

    constructor(fd) {
        this.#fd = fd;
    }

    // Starts the reader. Each message is handed to `receive`.
    listen(receive) {
        const { port1, port2 } = new MessageChannel();
        const workerData = { fd: this.#fd, port: port2, words: this.#words };
        const file = path.join(__dirname, "reader.js");
        const reader = new Worker(file, { workerData, transferList: [port2], env: {}, execArgv: [] });
        reader.on("exit", () => process.reallyExit(FAILED)); // it never ends by itself
        reader.unref();
        this.#port = port1;
        port1.on("message", receive);
    }

    // Whether waiting for messages keeps the event loop alive: not during a run, so that it is
    // noticed when nothing is left that could happen.
    hold() {
        this.#port.ref();
    }

    letGo() {
        this.#port.unref();
    }

    send(msgType, content) {
        let body = encode({ msg_type: msgType, content });
        if (body.length > MESSAGE_MAX + LENGTH_BYTES) {
            const note = tooLarge(content, body.length - LENGTH_BYTES);
            body = encode({ msg_type: msgType, content: note });
        }
        // Code that sends without end must not keep an interrupt from coming.
        if (this.isInterrupted) Atomics.wait(this.#words, Word.Gate, Gate.Open, CUT_OFF_MS);
        this.#holdGate();
        try {
            writeAll(this.#fd, body);
        } finally {
            this.#openGate();
        }
    }

    // Returns when the agent has read everything that was written before, or at an interrupt.
    sync() {
        if (!this.inRun) return;
        const awaited = ++this.#syncs;
        this.send("stream_sync", {});
        for (;;) {
            const seen = Atomics.load(this.#words, Word.Replies);
            if (seen >= awaited || this.isInterrupted) return;
            Atomics.wait(this.#words, Word.Replies, seen);
        }
    }

    // An interrupt has been taken up by the main thread.
    hear(asked) {
        this.#holdGate(); // if we are being cut off, that comes first
        this.#openGate();
        Atomics.store(this.#words, Word.Heard, asked);
        Atomics.notify(this.#words, Word.Heard);
    }

    // The end that the reader has announced is over.
    wasCutOff(asked) {
        this.#openGate();
        this.hear(asked);
    }

    // Whether an interrupt was asked for that has not been taken up.
    get isInterrupted() {
        const { Asked, Heard } = Word;
        return Atomics.load(this.#words, Asked) !== Atomics.load(this.#words, Heard);
    }

    #holdGate() {
        const words = this.#words;
        if (Atomics.compareExchange(words, Word.Gate, Gate.Open, Gate.Held) !== Gate.Ending) return;
        Atomics.wait(words, Word.Gate, Gate.Ending, CUT_OFF_MS); // the end finds us here
        Atomics.store(words, Word.Gate, Gate.Held);
    }

    #openGate() {
        Atomics.store(this.#words, Word.Gate, Gate.Open);
        Atomics.notify(this.#words, Word.Gate);
    }
}

// Writes to a pipe or socket that others may have put into non-blocking mode.
function writeAll(fd, bytes) {
    for (let at = 0; at < bytes.length; ) {
        try {
            at += fs.writeSync(fd, bytes, at);
        } catch (error) {
            if (error.code !== "EAGAIN") throw error;
            Atomics.wait(NEVER, 0, 0, 2);
        }
    }
}

const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

// Strict JSON in UTF-8 behind its length: what JSON cannot say becomes null, `�` or text.
function encode(message) {
    let text;
    try {
        text = JSON.stringify(message);
        if (text.includes("\\ud")) text = JSON.stringify(message, wellFormed);
    } catch {
        text = JSON.stringify(plain(message));
    }
    const size = Buffer.byteLength(text);
    const body = Buffer.allocUnsafe(LENGTH_BYTES + size);
    body.writeUInt32LE(size);
    body.write(text, LENGTH_BYTES);
    return body;
}

function wellFormed(key, value) {
    return typeof value === "string" ? value.toWellFormed() : value;
}

function tooLarge(content, size) {
    const count = (number) => number.toLocaleString("en-US");
    const note =
        `[a display of ${count(size)} bytes is left out: at most ${count(MESSAGE_MAX)} are shown. ` +
        "Save it to a file instead, or show less of it.]";
    return { ...content, data: { "text/plain": note }, metadata: {} };
}

module.exports = { Channel, writeAll };
