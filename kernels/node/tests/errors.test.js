"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { plainReport, report } = require("../errors");

test("an error without a stack, a name or a message", () => {
    const bad = new Error("x");
    for (const name of ["stack", "name", "message"]) {
        Object.defineProperty(bad, name, { get: () => { throw new Error("no"); } });
    }
    assert.equal(report(bad, "<cell-1>").ename, "Error");
    assert.equal(report(Object.create(Error.prototype), "<cell-1>").ename, "Error");
});

test("long values, lines and stacks are cut", () => {
    const long = report(new Error("y".repeat(100_000)), "<cell-1>");
    assert.match(long.evalue, /… \(34,464 more characters\)$/);
    assert.ok(long.traceback[0].length < 5_000);
    const many = new Error("many");
    many.stack = Array.from({ length: 1000 }, (_, line) => `line ${line}`).join("\n");
    const { traceback } = report(many, "<cell-1>");
    assert.ok(traceback.length <= 401);
    assert.ok(traceback.some((line) => line.includes("600 lines are left out")), traceback[200]);
});

test("colours are taken out", () => {
    const { evalue, traceback } = report(new Error("\x1b[31mred\x1b[0m"), "<cell-1>");
    assert.equal(evalue, "red");
    assert.ok(!traceback.join().includes("\x1b"));
});

test("the line is that of the innermost frame in the code", () => {
    const error = new Error("<cell-1>:9 is not it");
    error.stack = "Error: <cell-1>:9 is not it\n    at f (other.js:7:1)\n    at <cell-1>:3:2\n    at <cell-1>:5:1";
    assert.equal(report(error, "<cell-1>").line, 3);
    assert.equal(report(error, "<cell-2>").line, undefined);
});

test("values that are no errors", () => {
    assert.deepEqual(plainReport("Uncaught", "{\n}").traceback, ["Uncaught: {", "}"]);
    assert.equal(report({ a: 1 }, "<cell-1>").evalue, "{ a: 1 }");
    const hidden = { [Symbol.for("nodejs.util.inspect.custom")]() { throw new Error("no"); } };
    assert.equal(report(hidden, "<cell-1>").evalue, "a value that cannot be shown");
});
