// A copy of a value that every JSON reader takes: not too deep nor too large, without cycles.
"use strict";

const { Array, ArrayBuffer, Map, Number, Object, Set, String } = globalThis;

const DEPTH_MAX = 20; // the agent takes a few levels more
const ENTRIES_MAX = 500_000;

function plain(value) {
    return copy(value, 0, { left: ENTRIES_MAX });
}

function copy(value, depth, budget) {
    switch (typeof value) {
        case "string":
            return value.toWellFormed();
        case "number":
            return Number.isFinite(value) ? value : null;
        case "bigint":
            return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
        case "boolean":
            return value;
        case "object":
            return value === null ? null : copyObject(value, depth, budget);
        case "undefined":
            return undefined;
    }
    return String(value);
}

function copyObject(value, depth, budget) {
    if (depth > DEPTH_MAX || --budget.left < 0) return "…";
    if (typeof value.toJSON === "function") return copy(value.toJSON(), depth + 1, budget);
    if (value instanceof Map) value = Object.fromEntries(value);
    if (value instanceof Set || ArrayBuffer.isView(value)) value = Array.from(value);
    if (Array.isArray(value)) return value.map((entry) => copy(entry, depth + 1, budget) ?? null);
    const entries = Object.entries(value);
    return Object.fromEntries(
        entries.map(([key, entry]) => [key.toWellFormed(), copy(entry, depth + 1, budget)]),
    );
}

module.exports = { plain };
