"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { plain } = require("../plain");

test("what JSON cannot say becomes something that it can", () => {
    const value = { a: [1, NaN, Infinity, 10n, 2n ** 80n, undefined], b: undefined, c: "x\ud800", d: Symbol("s") };
    const expected = { a: [1, null, null, 10, String(2n ** 80n), null], b: undefined, c: "x\ufffd", d: "Symbol(s)" };
    assert.deepEqual(plain(value), expected);
});

test("collections and values that know their JSON", () => {
    const when = new Date(0);
    const value = { map: new Map([["k", 1]]), set: new Set([1]), bytes: new Uint8Array([7]), when };
    assert.deepEqual(plain(value), { map: { k: 1 }, set: [1], bytes: [7], when: "1970-01-01T00:00:00.000Z" });
});

test("cycles end", () => {
    const loop = {};
    loop.self = loop;
    assert.ok(JSON.stringify(plain(loop)).length < 500);
    loop.other = loop;
    assert.ok(JSON.stringify(plain(loop)).length < 50_000_000);
});
