// One run: what was asked for, and what holds while it runs.
"use strict";

const path = require("node:path");
const { Map, Object, SyntaxError, process } = globalThis;

// The code of a cell belongs to a file of that name in the working directory, which does not exist.
const CELL = "<cell>";
const CLASH = /^Identifier '(.+)' has already been declared$/u;

class Request {
    #env;
    #stdinPath;
    #filename;
    #argv;
    #cwd;
    #formerEnv = {};

    // Names that earlier cells have declared, and the word that may declare them anew.
    clashes = new Map();

    // How far it has come: see Driver.
    exitCode;
    exits = false;
    isEvaluated = false;
    waitsBefore = 0;
    hasCalledListeners = false;

    constructor(content, count) {
        this.code = content.code.replace(/^\ufeff/, "");
        this.isProgram = content.filename !== undefined;
        this.hasStdin = content.stdin_path !== undefined;
        this.name = this.isProgram ? sourceName(content.filename) : `<cell-${count}>`;
        this.#filename = content.filename ?? CELL;
        this.#argv = content.argv;
        this.#env = content.env ?? {};
        this.#cwd = content.cwd;
        this.#stdinPath = content.stdin_path;
    }

    // The name that V8 would not let a cell declare, as it may have been declared before.
    nameOfClash({ thrown } = {}) {
        if (this.isProgram || !(thrown instanceof SyntaxError)) return undefined;
        const name = CLASH.exec(thrown.message)?.[1];
        return this.clashes.has(name) ? undefined : name;
    }

    enter(streams, modules) {
        if (this.hasStdin) streams.attachStdin(this.#stdinPath);
        if (this.#cwd !== undefined) process.chdir(this.#cwd);
        for (const [name, value] of Object.entries(this.#env)) {
            this.#formerEnv[name] = process.env[name];
            process.env[name] = value;
        }
        const file = path.resolve(this.#filename);
        process.argv = [process.execPath, ...(this.isProgram ? [file] : []), ...(this.#argv ?? []).slice(1)];
        modules.enter(file, this.isProgram);
    }

    leave(streams) {
        streams.detachStdin();
        process.argv = [process.execPath];
        for (const [name, value] of Object.entries(this.#formerEnv)) {
            if (value === undefined) delete process.env[name];
            else process.env[name] = value;
        }
    }
}

// A `//# sourceURL=` takes no blanks and quotes.
function sourceName(filename) {
    return filename.replace(/[\s"'%]/gu, (char) => `%${char.codePointAt(0).toString(16).toUpperCase()}`);
}

module.exports = { Request };
