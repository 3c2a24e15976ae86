// Values as MIME bundles, and the global `display`.
"use strict";

const { randomUUID } = require("node:crypto");
const { inspect } = require("node:util");
const { plain } = require("./plain");
const { ArrayBuffer, Buffer, Math, Object, Promise, String, Uint8Array } = globalThis;

// An object may say itself how it is shown: a method that answers a MIME bundle, or a promise of one.
const DISPLAY = Symbol.for("Jupyter.display");
const PNG = [0x89, 0x50, 0x4e, 0x47];
const JPEG = [0xff, 0xd8, 0xff];

// limits::kPictureMax of the contract, as base64. A larger one is replaced by a note.
const PICTURE_MAX = 4 * 1024 * 1024;
const PICTURE_TEXT_MAX = Math.ceil(PICTURE_MAX / 3) * 4;

// Values for programs, as Python's displays have them: columns of a table, what a chart shows.
const JSON_TYPES = ["application/json", "e2b/data", "e2b/chart"];

// The kinds of `display.html(text)` and its like.
const KINDS = {
    text: "text/plain",
    html: "text/html",
    markdown: "text/markdown",
    latex: "text/latex",
    svg: "image/svg+xml",
    json: "application/json",
    png: "image/png",
    jpeg: "image/jpeg",
    pdf: "application/pdf",
    javascript: "application/javascript",
};

class Displays {
    #channel;
    #streams;

    constructor(channel, streams) {
        this.#channel = channel;
        this.#streams = streams;
        const value = this.#display();
        const shape = { value, writable: true, configurable: true, enumerable: false };
        Object.defineProperty(globalThis, "display", shape);
    }

    async showResult(value, executionCount) {
        const data = bounded(await bundleOf(value));
        this.#send("execute_result", { data, metadata: {}, execution_count: executionCount });
    }

    #display() {
        const display = (value, options = {}) => {
            const bundle = options.raw ? value : bundleOf(value);
            if (!(bundle instanceof Promise)) return this.#publish(bundle, options);
            return bundle.then((data) => this.#publish(data, options));
        };
        for (const [name, mime] of Object.entries(KINDS)) {
            display[name] = (value, options = {}) => this.#publish({ [mime]: value }, options);
        }
        display.update = (id, value, options) =>
            display(value, { ...options, display_id: id, update: true });
        display.clear = ({ wait = false } = {}) => this.#send("clear_output", { wait: Boolean(wait) });
        return display;
    }

    // With a `display_id` (true: a new one) the display can be updated later, also by what is answered.
    #publish(bundle, { metadata = {}, display_id: id, update = false }) {
        const data = bounded(asData(bundle));
        if (id === true) id = randomUUID();
        const transient = id === undefined ? {} : { display_id: String(id) };
        const kind = update ? "update_display_data" : "display_data";
        this.#send(kind, { data, metadata: plain(metadata) ?? {}, transient });
        if (id !== undefined && !update) return new Handle(id);
    }

    #send(kind, content) {
        this.#channel.send(kind, content);
        this.#streams.messageSent();
    }
}

// A display that was shown under an id.
class Handle {
    constructor(id) {
        this.display_id = id;
    }

    update(value, options) {
        return globalThis.display.update(this.display_id, value, options);
    }
}

// A bundle, or a promise of one if the object answers that.
function bundleOf(value) {
    if (typeof value?.[DISPLAY] === "function") return asBundle(value[DISPLAY](), value);
    if (value instanceof Uint8Array) {
        if (startsWith(value, PNG)) return { "image/png": base64(value) };
        if (startsWith(value, JPEG)) return { "image/jpeg": base64(value) };
    }
    return elementOf(value) ?? { "text/plain": inspect(value) };
}

function asBundle(answer, value) {
    if (answer instanceof Promise) return answer.then((bundle) => asBundle(bundle, value));
    if (answer === null || typeof answer !== "object") return { "text/plain": inspect(value) };
    return asData(answer);
}

function asData(bundle) {
    return Object.fromEntries(Object.entries(bundle).map(([mime, part]) => [mime, mimeValue(mime, part)]));
}

// A note in place of pictures that are too large.
function bounded(data) {
    const kept = {};
    const notes = [];
    for (const [mime, value] of Object.entries(data)) {
        const isLarge = mime.startsWith("image/") && value.length > PICTURE_TEXT_MAX;
        if (isLarge) notes.push(tooLarge(mime, value));
        else kept[mime] = value;
    }
    if (notes.length > 0) kept["text/plain"] = [kept["text/plain"] ?? [], notes].flat().join("\n");
    return kept;
}

function tooLarge(mime, value) {
    const size = mime === KINDS.svg ? value.length : Math.floor((value.length * 3) / 4);
    return (
        `[${mime} of ${size.toLocaleString("en-US")} bytes is left out: a picture has at most ` +
        `${PICTURE_MAX.toLocaleString("en-US")} (the limit \`picture\`). ` +
        "Save it to a file instead, or make it smaller: fewer pixels.]"
    );
}

// Canvases, and the elements of an HTML document, by what they have.
function elementOf(value) {
    if (value === null || typeof value !== "object") return undefined;
    if (typeof value.toDataURL === "function") {
        const [, mime, data] = /^data:([^;,]+);base64,(.*)$/s.exec(value.toDataURL()) ?? [];
        if (mime !== undefined) return { [mime]: data };
    }
    if (typeof value.outerHTML === "string") {
        const mime = /^\s*<svg\b/i.test(value.outerHTML) ? KINDS.svg : KINDS.html;
        return { [mime]: value.outerHTML };
    }
    return undefined;
}

// Text as text, bytes as base64, JSON types as they are.
function mimeValue(mime, value) {
    if (value instanceof ArrayBuffer) value = new Uint8Array(value);
    if (ArrayBuffer.isView(value) && !isJson(mime)) return base64(value);
    if (typeof value === "string") return value;
    return isJson(mime) ? (plain(value) ?? null) : String(value);
}

function isJson(mime) {
    return JSON_TYPES.includes(mime) || mime.endsWith("+json");
}

function startsWith(bytes, head) {
    return head.every((byte, index) => bytes[index] === byte);
}

function base64(bytes) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

module.exports = { Displays };
