// How stacks read: without our frames and the machinery of Node below them, and with the places in
// the TypeScript that the code came from.
"use strict";

const Module = require("node:module");
const { Error, JSON, Map } = globalThis;

const MAPS_MAX = 500; // files and runs whose places are known

class Stacks {
    #maps = new Map();

    constructor() {
        Error.prepareStackTrace = (error, frames) => this.#text(error, frames);
    }

    // `map` is the text of a source map for the code of that name.
    remember(name, map) {
        this.#maps.delete(name);
        this.#maps.set(name, { text: map });
        if (this.#maps.size > MAPS_MAX) this.#maps.delete(this.#maps.keys().next().value);
    }

    #text(error, frames) {
        const lines = theirs(frames).map((frame) => `\n    at ${this.#placed(frame)}`);
        return `${headOf(error)}${lines.join("")}`;
    }

    #placed(frame) {
        const known = this.#maps.get(fileOf(frame));
        if (known === undefined) return frame.toString();
        known.map ??= new Module.SourceMap(JSON.parse(known.text));
        const [line, column] = [frame.getLineNumber(), frame.getColumnNumber()];
        const { originalLine, originalColumn } = known.map.findEntry(line - 1, column - 1);
        const placed = `:${originalLine + 1}:${originalColumn + 1}`;
        return frame.toString().replace(`:${line}:${column}`, originalLine === undefined ? "$&" : placed);
    }
}

function theirs(frames) {
    const first = frames.findIndex(isOurs);
    if (first < 0) return frames;
    const isMachinery = (frame, index) => index > first && fileOf(frame).startsWith("node:");
    return frames.filter((frame, index) => !isOurs(frame) && !isMachinery(frame, index));
}

function isOurs(frame) {
    const file = fileOf(frame);
    return file.startsWith(__dirname) || file === "node:inspector";
}

function fileOf(frame) {
    return frame.getScriptNameOrSourceURL() ?? "";
}

function headOf(error) {
    try {
        return Error.prototype.toString.call(error);
    } catch {
        return "Error";
    }
}

module.exports = { Stacks };
