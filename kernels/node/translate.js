// Turns what only a module may say into what a script may: `import`, `import()`, `import.meta` and
// `export`. Scripts keep what they declare for the next run; modules do not.
//
//     import fs, { join as j } from "x"   const {default: fs, join: j} = await __cloister__.names("x", …);
//     import("x")                         __cloister__.import("x")
//     import.meta                         __cloister__.meta
//     export const a = 1                  const a = 1
//
// In a cell, a `const` at the top becomes `let`: its name may be declared anew by a later cell, either way. What V8
// still refuses to declare anew, as `let f` over `function f`, is declared as it allows: see `clashes`.
//
// Every line stays on its line, so that errors are reported where they are.
"use strict";

const { Lexer } = require("./lexer");
const { JSON, Map, Math, Set } = globalThis;

const HELPER = "__cloister__";
// What declares a name at the top, in one cell or the next.
const DECLARING = new Set(["let", "const", "var", "class", "function"]);
const META = /\s*\.\s*meta\b/y;

class Refused extends Error {}

class Translator {
    #code;
    #lexer;
    #edits = [];
    // `import(` whose parenthesis is still open: a method may have that name.
    #calls = [];

    #isCell;
    #clashes;
    #previous; // the token before the one that is looked at
    #openBody = false; // of a class or function that has become a value

    constructor(code, isCell, clashes) {
        this.#code = code;
        this.#isCell = isCell;
        this.#clashes = clashes;
        this.#lexer = new Lexer(code);
    }

    run() {
        let before;
        for (let token = this.#lexer.next(); token.kind !== "end"; token = this.#lexer.next()) {
            this.#previous = before;
            before = token;
            if (token.text === ")") this.#closeCall();
            if (token.text === "}") this.#closeBody(token);
            if (token.kind !== "word" || token.isProperty) continue;
            if (token.text === "import") this.#import(token);
            else if (this.#lexer.depth > 0) continue;
            else if (token.text === "export") this.#tried(token, () => this.#export(token));
            else if (DECLARING.has(token.text) && this.#isCell) this.#declaration(token);
        }
        return this.#applied();
    }

    #applied() {
        let out = "";
        let at = 0;
        for (const { start, end, text } of this.#edits) {
            const lines = this.#code.slice(start, end).split("\n").length - text.split("\n").length;
            out += this.#code.slice(at, start) + text + "\n".repeat(Math.max(lines, 0));
            at = end;
        }
        return out + this.#code.slice(at);
    }

    #declaration(token) {
        const isValue = token.text === "class" || token.text === "function";
        const names = this.#lexer.ahead(() => this.#declared());
        const kind = this.#clashOf(names);
        if (kind === undefined) {
            if (token.text === "const") this.#edit(token.start, token.end, "let  ");
        } else if (isValue) {
            const { start } = this.#previous?.text === "async" ? this.#previous : token;
            this.#edit(start, start, `${kind} ${names[0]} = `);
            this.#openBody = true;
        } else {
            this.#edit(token.start, token.end, kind.padEnd(token.text.length));
            if (token.text !== "var") this.#giveValue();
        }
    }

    // `let x` makes x undefined, `var x` would leave it as it is.
    #giveValue() {
        const end = this.#lexer.ahead(() => {
            const name = this.#lexer.next();
            const next = this.#lexer.next();
            const isOver = [";", ",", ""].includes(next.text) || this.#code.slice(name.end, next.start).includes("\n");
            return name.kind === "word" && isOver && next.text !== "=" ? name.end : undefined;
        });
        if (end !== undefined) this.#edit(end, end, " = undefined");
    }

    // The words up to what the first name or pattern is given.
    #declared() {
        const names = [];
        for (let token = this.#lexer.next(); token.kind !== "end"; token = this.#lexer.next()) {
            if (["=", ";", "(", "extends"].includes(token.text) && this.#lexer.depth <= 1) break;
            if (token.kind === "word") names.push(token.text);
            if (token.kind === "word" && this.#lexer.depth === 0) break;
        }
        return names;
    }

    // A declaration needs no semicolon behind it, a value may.
    #closeBody(token) {
        if (!this.#openBody || this.#lexer.depth > 0) return;
        this.#openBody = false;
        this.#edit(token.end, token.end, ";");
    }

    #clashOf(names) {
        return names.map((name) => this.#clashes.get(name)).find((kind) => kind !== undefined);
    }

    #kind(names = []) {
        return this.#isCell ? (this.#clashOf(names) ?? "let") : "const";
    }

    #edit(start, end, text) {
        this.#edits.push({ start, end, text });
    }

    #import(token) {
        META.lastIndex = token.end;
        if (META.test(this.#code)) {
            this.#edit(token.start, META.lastIndex, `${HELPER}.meta`);
        } else if (this.#peek().text === "(") {
            this.#calls.push({ depth: this.#lexer.depth, edit: this.#edits.length });
            this.#edit(token.start, token.end, `${HELPER}.import`);
        } else if (this.#lexer.depth === 0) {
            this.#tried(token, () => this.#importStatement(token));
        }
    }

    // `import(…) {` is a method of that name.
    #closeCall() {
        if (this.#calls.at(-1)?.depth !== this.#lexer.depth) return;
        const { edit } = this.#calls.pop();
        if (this.#peek().text !== "{") return;
        const { start, end } = this.#edits[edit];
        this.#edits[edit] = { start, end, text: this.#code.slice(start, end) };
    }

    #importStatement(token) {
        const first = this.#peek();
        const { names, space } = first.kind === "string" ? { names: [] } : this.#bindings();
        if (first.kind !== "string") this.#word("from");
        const { from, end } = this.#source();
        const kind = this.#kind([...names.map(({ as }) => as), space]);
        this.#edit(token.start, end, importText(names, space, from, kind));
    }

    // What stands between `import` and `from`.
    #bindings() {
        const names = [];
        let space;
        if (this.#peek().kind === "word") {
            names.push({ name: "default", as: this.#lexer.next().text });
            if (this.#peek().text !== ",") return { names, space };
            this.#lexer.next();
        }
        if (this.#peek().text === "{") {
            names.push(...this.#nameList());
        } else {
            this.#mark("*");
            this.#word("as");
            space = this.#lexer.next().text;
        }
        return { names, space };
    }

    // `{a, b as c, "d e" as f}`
    #nameList() {
        const names = [];
        this.#mark("{");
        while (this.#peek().text !== "}") {
            const name = this.#name();
            const renamed = this.#peek().text === "as" && this.#lexer.next();
            names.push({ name, as: renamed ? this.#name() : name });
            if (this.#peek().text !== "}") this.#mark(",");
        }
        this.#mark("}");
        return names;
    }

    // `"x" with {type: "json"};`: the text of the arguments for import(), and where it ends.
    #source() {
        const source = this.#lexer.next();
        if (source.kind !== "string") throw new Refused();
        let { text: from, end } = source;
        if (["with", "assert"].includes(this.#peek().text)) {
            this.#lexer.next();
            const start = this.#mark("{").start;
            while (this.#lexer.depth > 0 && this.#peek().kind !== "end") end = this.#lexer.next().end;
            from += `, {with: ${this.#code.slice(start, end)}}`;
        }
        if (this.#peek().text === ";") end = this.#lexer.next().end;
        return { from, end };
    }

    #export(token) {
        const next = this.#peek();
        if (next.text === "{" || next.text === "*") {
            this.#exportList(token);
        } else if (next.text === "default") {
            this.#lexer.next();
            const named = this.#lexer.ahead(() => this.#namesItself());
            this.#edit(token.start, next.end, named ? "" : `${HELPER}.default =`);
        } else if (next.kind === "word") {
            this.#edit(token.start, token.end, "");
        }
    }

    // `export {a as b};`, `export * as c from "x";`
    #exportList(token) {
        let end = this.#lexer.next().end;
        if (this.#lexer.depth > 0) {
            while (this.#lexer.depth > 0 && this.#peek().kind !== "end") end = this.#lexer.next().end;
        } else if (this.#peek().text === "as") {
            this.#lexer.next();
            this.#name();
        }
        if (this.#peek().text !== "from") {
            if (this.#peek().text === ";") end = this.#lexer.next().end;
            return this.#edit(token.start, end, ";");
        }
        this.#lexer.next();
        const source = this.#source();
        this.#edit(token.start, source.end, importText([], undefined, source.from, this.#kind()));
    }

    // Whether a function or class with a name follows, which is declared by it.
    #namesItself() {
        let token = this.#lexer.next();
        if (token.text === "async") token = this.#lexer.next();
        if (token.text !== "function" && token.text !== "class") return false;
        const isClass = token.text === "class";
        token = this.#lexer.next();
        if (token.text === "*") token = this.#lexer.next();
        return token.kind === "word" && !(isClass && token.text === "extends");
    }

    #peek() {
        return this.#lexer.ahead(() => this.#lexer.next());
    }

    #name() {
        const token = this.#lexer.next();
        if (token.kind !== "word" && token.kind !== "string") throw new Refused();
        return token.text;
    }

    #mark(text) {
        const token = this.#lexer.next();
        if (token.text !== text) throw new Refused();
        return token;
    }

    #word(text) {
        this.#mark(text);
    }

    // A statement that is not well-formed stays as it is: V8 reports it.
    #tried(token, translate) {
        const before = this.#edits.length;
        try {
            translate();
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            this.#edits.length = before;
        }
    }
}

function importText(names, space, from, kind) {
    if (space !== undefined) {
        const rest = names.length > 0 ? `, ${pattern(names)} = ${space}` : "";
        return `${kind} ${space} = await ${HELPER}.import(${from})${rest};`;
    }
    if (names.length === 0) return `${kind} {} = await ${HELPER}.import(${from});`;
    const wanted = names.map(({ name }) => (isQuoted(name) ? name : JSON.stringify(name)));
    return `${kind} ${pattern(names)} = await ${HELPER}.names([${wanted}], ${from});`;
}

function pattern(names) {
    return `{${names.map(({ name, as }) => (name === as ? name : `${name}: ${as}`)).join(", ")}}`;
}

function isQuoted(name) {
    return name.startsWith('"') || name.startsWith("'");
}

// `isCell`: what it declares may be declared anew later. `clashes`: for names that are there already and cannot be
// declared as they are here, the word that can (`var` or `let`).
function translate(code, isCell = false, clashes = new Map()) {
    const isNeeded = clashes.size > 0 || /\b(?:import|export|const)\b/.test(code);
    return isNeeded ? new Translator(code, isCell, clashes).run() : code;
}

module.exports = { translate };
