// A thrown value as plain data: name, value, traceback lines without colours, and the line of this
// run's code.
"use strict";

const { inspect, stripVTControlCharacters, types } = require("node:util");
const { Error, Math, Number, String } = globalThis;

const VALUE_MAX = 64 * 1024;
const LINE_MAX = 4 * 1024;
const LINES_MAX = 400;
const FRAME = /^\s+at /;

// The content of an `error` message. `name` is that of the code; `details` are the inspector's.
function report(thrown, name, details) {
    if (!isError(thrown)) return plainReport("Uncaught", shown(thrown));
    const lines = stackOf(thrown).split("\n");
    const line = lineIn(lines, name);
    if (line === undefined && isUncompiled(thrown, details)) {
        return reportSyntax(thrown, name, details);
    }
    return content(nameOf(thrown), messageOf(thrown), lines, line);
}

// Code that was not compiled has no frame: the place is shown in the code itself, as Node does.
function reportSyntax(error, name, { lineNumber, columnNumber, source = "" }) {
    const code = source.split("\n")[lineNumber] ?? "";
    const at = Math.max(columnNumber, 0);
    const [ename, evalue] = [nameOf(error), messageOf(error)];
    const place = [`${name}:${lineNumber + 1}`, code, `${" ".repeat(at)}^`, ""];
    return content(ename, evalue, [...place, `${ename}: ${evalue}`], lineNumber + 1);
}

function isUncompiled(error, details) {
    if (details === undefined || nameOf(error) !== "SyntaxError") return false;
    return details.stackTrace === undefined && details.url === undefined;
}

// What has no stack: a value that is no error, or an end of the run that nobody threw.
function plainReport(name, value) {
    return content(name, value, `${name}: ${value}`.split("\n"), undefined);
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

function cut(text, size) {
    if (text.length <= size) return text;
    return `${text.slice(0, size)}… (${(text.length - size).toLocaleString("en-US")} more characters)`;
}

module.exports = { plainReport, report };
