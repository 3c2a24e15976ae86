// The tokens of JavaScript, as far as it takes to tell code from strings, templates, comments and
// regular expressions. It never fails: text that is no JavaScript is V8's to report.
"use strict";

const BLANK = /(?:\s|\/\/[^\n\r\u2028\u2029]*|\/\*[^]*?(?:\*\/|$))+/y;
const HASHBANG = /#![^\n\r\u2028\u2029]*/y;
const WORD = /[\p{ID_Start}$_#@\\][\p{ID_Continue}$\u200c\u200d\\]*/uy;
const NUMBER = /\.?\d[\w.]*/y;
const STRING = /"(?:[^"\\\n\r]|\\[^])*"?|'(?:[^'\\\n\r]|\\[^])*'?/y;
const REGEX = /\/(?:[^/\\[\n\r]|\\.|\[(?:[^\]\\\n\r]|\\.)*\])+\/[\p{ID_Continue}$]*/uy;
const MARK = /\+\+|--|=>|\.\.\.|\?\.|[^]/uy;

// Words that an expression may follow, so that a slash after them begins a regular expression.
const BEFORE_VALUE = new Set(
    ("await case delete do else extends in instanceof new of return throw typeof void yield").split(" "),
);
// Words whose parentheses are followed by a statement.
const BEFORE_CONDITION = new Set(["if", "while", "for", "with"]);

class Lexer {
    #text;
    #at = 0;
    #previous = { kind: "start" };
    // The brackets that are open: which, and whether a regular expression may follow the closing one.
    #open = [];

    constructor(text) {
        this.#text = text;
        this.#match(HASHBANG);
    }

    get depth() {
        return this.#open.length;
    }

    // Kinds: word, string, template, number, regex, mark, end. A word after a dot `isProperty`.
    next() {
        const token = this.#read();
        this.#previous = token;
        return token;
    }

    // What `look` finds from here on, without moving.
    ahead(look) {
        const [at, previous, open] = [this.#at, this.#previous, [...this.#open]];
        const found = look();
        [this.#at, this.#previous, this.#open] = [at, previous, open];
        return found;
    }

    #match(pattern) {
        pattern.lastIndex = this.#at;
        const found = pattern.exec(this.#text);
        if (found === null) return undefined;
        this.#at = pattern.lastIndex;
        return found[0];
    }

    #read() {
        this.#match(BLANK);
        const start = this.#at;
        const made = (kind, text) => ({ kind, text, start, end: this.#at });
        const char = this.#text[start];
        if (char === undefined) return made("end", "");
        if (char === "`") return made("template", this.#template(start + 1));
        if (char === "}" && this.#open.at(-1)?.mark === "${") {
            this.#open.pop();
            return made("template", this.#template(start + 1));
        }
        const word = this.#match(WORD);
        if (word !== undefined) return { ...made("word", word), isProperty: this.#afterDot() };
        for (const [kind, pattern] of [["number", NUMBER], ["string", STRING]]) {
            const text = this.#match(pattern);
            if (text !== undefined) return made(kind, text);
        }
        const regex = char === "/" && this.#valueMayFollow() ? this.#match(REGEX) : undefined;
        if (regex !== undefined) return made("regex", regex);
        const mark = this.#match(MARK);
        return { ...made("mark", mark), regexAfter: this.#bracket(mark) };
    }

    // Goes on in a template until it ends, or until code begins in it.
    #template(from) {
        for (let at = from; at < this.#text.length; ++at) {
            const char = this.#text[at];
            if (char === "\\") ++at;
            if (char === "`") return this.#cut(at + 1);
            if (char === "$" && this.#text[at + 1] === "{") {
                this.#open.push({ mark: "${" });
                return this.#cut(at + 2);
            }
        }
        return this.#cut(this.#text.length);
    }

    #cut(end) {
        const text = this.#text.slice(this.#at, end);
        this.#at = end;
        return text;
    }

    #afterDot() {
        return this.#previous.kind === "mark" && [".", "?."].includes(this.#previous.text);
    }

    // Keeps account of brackets; answers whether a regular expression may follow the mark.
    #bracket(mark) {
        if (mark === "(") {
            const { kind, text, isProperty } = this.#previous;
            const regexAfter = kind === "word" && !isProperty && BEFORE_CONDITION.has(text);
            this.#open.push({ mark, regexAfter });
        } else if (mark === "[") {
            this.#open.push({ mark, regexAfter: false });
        } else if (mark === "{") {
            this.#open.push({ mark, regexAfter: this.#blockMayFollow() });
        } else if (mark === ")" || mark === "]" || mark === "}") {
            return this.#open.pop()?.regexAfter ?? false;
        }
        return mark !== "++" && mark !== "--";
    }

    #valueMayFollow() {
        const { kind, text, isProperty, regexAfter } = this.#previous;
        if (kind === "word") return !isProperty && BEFORE_VALUE.has(text);
        if (kind === "template") return text.endsWith("${");
        return kind === "start" || (kind === "mark" && regexAfter);
    }

    // Whether a brace opens a block rather than an object.
    #blockMayFollow() {
        const { kind, text, isProperty } = this.#previous;
        if (kind === "word") return isProperty || !BEFORE_VALUE.has(text) || ["do", "else"].includes(text);
        if (kind === "mark") return [";", "{", "}", ")", "=>"].includes(text);
        return kind === "start";
    }
}

module.exports = { Lexer };
