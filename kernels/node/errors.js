// A thrown value as plain data: name, value, traceback lines without colours, and the line of this
// run's code.
"use strict";

const { inspect, stripVTControlCharacters, types } = require("node:util");

const VALUE_MAX = 64 * 1024;
const LINE_MAX = 4 * 1024;
const LINES_MAX = 400;
const FRAME = /^\s+at /;

// The content of an `error` message. `name` is that of the code; `details` are the inspector's.
function report(thrown, name, details) {
    if (!isError(thrown)) return reportValue(thrown, name, details);
    const lines = stackOf(thrown).split("\n");
    const line = lineIn(lines, name);
    if (line === undefined && isUncompiled(thrown, details, name)) {
        return reportSyntax(thrown, name, details);
    }
    return content(nameOf(thrown), messageOf(thrown), withoutOurs(lines), line);
}

// What was thrown is no error: all that is known is where.
function reportValue(thrown, name, details) {
    const text = shown(thrown);
    const line = details?.url === name ? details.lineNumber + 1 : undefined;
    const where = line === undefined ? [] : [`    at ${name}:${line}:${details.columnNumber + 1}`];
    return content("Uncaught", text, [...`Uncaught ${text}`.split("\n"), ...where], line);
}

// Code that was not compiled has no frame: the place is shown in the code itself, as Node does.
function reportSyntax(error, name, { lineNumber, columnNumber, source = "" }) {
    const code = source.split("\n")[lineNumber] ?? "";
    const at = Math.max(columnNumber, 0);
    const [ename, evalue] = [nameOf(error), messageOf(error)];
    const place = [`${name}:${lineNumber + 1}`, code, `${" ".repeat(at)}^`, ""];
    return content(ename, evalue, [...place, `${ename}: ${evalue}`], lineNumber + 1);
}

function isUncompiled(error, details, name) {
    if (details === undefined || nameOf(error) !== "SyntaxError") return false;
    return details.stackTrace === undefined && (!details.url || details.url === name);
}

// An end that is no thrown value.
function plainReport(name, value) {
    return content(name, value, [`${name}: ${value}`], undefined);
}

function content(ename, evalue, lines, line) {
    const clean = lines.map(stripVTControlCharacters);
    if (clean.length > LINES_MAX) {
        const half = LINES_MAX / 2;
        const note = `  … ${clean.length - LINES_MAX} lines are left out …`;
        clean.splice(half, clean.length - LINES_MAX, note);
    }
    const traceback = clean.map((text) => cut(text, LINE_MAX));
    const made = { ename, evalue: cut(stripVTControlCharacters(evalue), VALUE_MAX), traceback };
    return line === undefined ? made : { ...made, line };
}

function isError(value) {
    return types.isNativeError(value) || value instanceof Error;
}

function nameOf(error) {
    return guarded(() => String(error.name || "Error"), "Error");
}

function messageOf(error) {
    return guarded(() => String(error.message), "");
}

// With causes, the errors of an AggregateError and further properties.
function stackOf(error) {
    return guarded(() => inspect(error, { depth: 4 }), `${nameOf(error)}: ${messageOf(error)}`);
}

function shown(value) {
    return guarded(() => inspect(value), "a value that cannot be shown");
}

// User code may be behind each property.
function guarded(look, otherwise) {
    try {
        return look();
    } catch {
        return otherwise;
    }
}

// The innermost frame that is in the code of that name.
function lineIn(lines, name) {
    for (const line of lines) {
        const at = FRAME.test(line) ? line.indexOf(`${name}:`) : -1;
        if (at >= 0) return Number.parseInt(line.slice(at + name.length + 1), 10);
    }
    return undefined;
}

// Leaves out our frames, and in the same stack the machinery of Node below them.
function withoutOurs(lines) {
    const kept = [];
    for (let at = 0; at < lines.length; ) {
        let end = at;
        while (end < lines.length && FRAME.test(lines[end])) ++end;
        if (end === at) kept.push(lines[at++]);
        else kept.push(...withoutOurFrames(lines.slice(at, end)));
        at = Math.max(at, end);
    }
    return kept;
}

function withoutOurFrames(frames) {
    const first = frames.findIndex(isOurs);
    if (first < 0) return frames;
    const machinery = (frame, index) => index > first && frame.includes("node:");
    const kept = frames.filter((frame, index) => !isOurs(frame) && !machinery(frame, index));
    // Behind the last frame begin the further properties of the error.
    if (frames.at(-1).endsWith(" {")) kept.push(`${(kept.pop() ?? "   ").replace(/ \{$/, "")} {`);
    return kept;
}

function isOurs(frame) {
    return frame.includes(__dirname) || frame.includes("node:inspector");
}

function cut(text, size) {
    if (text.length <= size) return text;
    return `${text.slice(0, size)}… (${(text.length - size).toLocaleString("en-US")} more characters)`;
}

module.exports = { plainReport, report };
