// `node --test` beside the driver's files; tests/api/test_javascript.py starts it in a sandbox.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { translate } = require("../translate");

const f = new Map([["f", "var"]]);
const g = new Map([["g", "let"]]);
const CLASHING = [
    [f, "let f = 1", "var f = 1"],
    [f, "const f = 1;", "var   f = 1;"],
    [f, "let a = 1; const {b, f} = {}", "let a = 1; var   {b, f} = {}"],
    [f, "let f\nlet h", "var f = undefined\nlet h"],
    [f, "let f, h = 2;", "var f = undefined, h = 2;"],
    [f, "class f extends g({}) { m() {} }\n(1)", "var f = class f extends g({}) { m() {} };\n(1)"],
    [f, "{ let f = 1 }", "{ let f = 1 }"],
    [f, "let h = f", "let h = f"],
    [f, 'import f from "m"', 'var {default: f} = await __cloister__.names(["default"], "m");'],
    [g, "var g = 1", "let g = 1"],
    [g, "async function* g(a = {}) { }", "let g = async function* g(a = {}) { };"],
];

test("what is there already is declared as it may be", () => {
    for (const [clashes, code, wanted] of CLASHING) assert.equal(translate(code, true, clashes), wanted);
});

const TRANSLATED = {
    'import fs from "fs"': 'const {default: fs} = await __cloister__.names(["default"], "fs");',
    "import {a, b as c, default as d, \"x y\" as e,} from 'm';":
        "const {a, b: c, default: d, \"x y\": e} = await __cloister__.names([\"a\",\"b\",\"default\",\"x y\"], 'm');",
    'import * as all from "m"': 'const all = await __cloister__.import("m");',
    'import d, * as all from "m"': 'const all = await __cloister__.import("m"), {default: d} = all;',
    'import d, {q} from "m"': 'const {default: d, q} = await __cloister__.names(["default","q"], "m");',
    'import{a}from"m";b()': 'const {a} = await __cloister__.names(["a"], "m");b()',
    'import "m"; import "n"': 'const {} = await __cloister__.import("m"); const {} = await __cloister__.import("n");',
    'import j from "./j.json" with {type: "json"};':
        'const {default: j} = await __cloister__.names(["default"], "./j.json", {with: {type: "json"}});',
    'import from from "m"': 'const {default: from} = await __cloister__.names(["default"], "m");',
    'import {\n  a, // one\n  b,\n} from "m"\nnext': 'const {a, b} = await __cloister__.names(["a","b"], "m");\n\n\n\nnext',
    'const x = await import("m")': 'const x = await __cloister__.import("m")',
    "import.meta.url": "__cloister__.meta.url",
    '`a ${import("m")} import("n") ${`${import("o")}`}`':
        '`a ${__cloister__.import("m")} import("n") ${`${__cloister__.import("o")}`}`',
    'a / import("m") / 2': 'a / __cloister__.import("m") / 2',
    'x = {a: 1} / 2; import("m")': 'x = {a: 1} / 2; __cloister__.import("m")',
    'if (x) { import("m") }': 'if (x) { __cloister__.import("m") }',
    'i++ / import("m") / g': 'i++ / __cloister__.import("m") / g',
    "#!/usr/bin/env node\nimport 'm'": "#!/usr/bin/env node\nconst {} = await __cloister__.import('m');",
    "export const a = 1": " const a = 1",
    "export async function f() {}": " async function f() {}",
    "export default function f() {}": " function f() {}",
    "export default function* g() {}": " function* g() {}",
    "export default class A {}": " class A {}",
    "export default class extends A {}": "__cloister__.default = class extends A {}",
    "export default function () {}": "__cloister__.default = function () {}",
    "export default 5": "__cloister__.default = 5",
    "export {a, b as c}; d": "; d",
    'export * as q from "m"': 'const {} = await __cloister__.import("m");',
    'export {a} from "m"': 'const {} = await __cloister__.import("m");',
};

// In a cell, what is declared at the top may be declared anew.
const OF_CELLS = {
    "const a = 1, b = 2": "let   a = 1, b = 2",
    "export const a = 1": " let   a = 1",
    "for (const x of y) { const z = x }": "for (const x of y) { const z = x }",
    "o.const; ({const: 1}); `const`": "o.const; ({const: 1}); `const`",
    'import {a} from "m"': 'let {a} = await __cloister__.names(["a"], "m");',
};

const LEFT_ALONE = [
    "1 + 1",
    'o.import("m"); o?.export',
    '({import(a) { return a }}); class A { import() {} async import() {} }',
    '/import("m")/.test(y); if (x) /import(/.exec(1); x => { return /import(/ }',
    'while (x) /[/]import(/.test(y)',
    'function f() {} /import(/.test(x)',
    '// import x from "m"\n/* import y from "m" */ "import z from \\"m\\""',
    "`import x from 'm'`",
    "({import: 1, export: 2})",
    // Not well-formed: V8 says so.
    "import x",
    'import {a from "m"',
    "import {a, b}",
    "import * from 'm'",
    "x = `open ${",
    "/* open",
    '"open',
    "",
];

for (const [code, expected] of Object.entries(TRANSLATED)) {
    test(code, () => assert.equal(translate(code), expected));
}

for (const [code, expected] of Object.entries(OF_CELLS)) {
    test(`cell: ${code}`, () => assert.equal(translate(code, true), expected));
}

for (const code of LEFT_ALONE) {
    test(`left alone: ${code}`, () => assert.equal(translate(code), code));
}

test("lines stay on their lines", () => {
    const code = 'import {\na,\nb\n} from "m";\n`\n${import("n")}`;\nexport {\na,\nb\n};\nlast';
    assert.equal(translate(code).split("\n").indexOf("last"), code.split("\n").indexOf("last"));
});

test("much code does not take long", () => {
    const code = "const x = `${1}`; if (a) /re/.test(b); import('m');\n".repeat(20_000);
    const begin = Date.now();
    assert.equal(translate(code).match(/__cloister__/g).length, 20_000);
    assert.ok(Date.now() - begin < 20_000);
});
