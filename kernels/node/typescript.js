// TypeScript: esbuild takes the types out. It is started when the first code needs it, and kept.
"use strict";

const fs = require("node:fs");
const Module = require("node:module");

const OPTIONS = {
    loader: "ts",
    target: "node20",
    sourcemap: "external",
    sourcesContent: false,
    logLevel: "silent",
    // An import that this code does not use may be meant for the next run.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, experimentalDecorators: true } },
};
const MAPS_MAX = 500; // code of that many runs keeps its lines in stacks
const EXTENSIONS = [".ts", ".cts", ".mts"];

class TypeScript {
    #esbuild;
    #maps = new Map();

    constructor() {
        Error.prepareStackTrace = (error, frames) => this.#stack(error, frames);
        for (const extension of EXTENSIONS) {
            Module._extensions[extension] = (module, file) => this.#load(module, file);
        }
    }

    // Throws a SyntaxError that has `place`, if the code is none.
    async strip(code, name) {
        const options = { ...OPTIONS, sourcefile: name };
        const done = await this.#transform(code, options).catch((error) => {
            throw Array.isArray(error.errors) && error.errors.length > 0 ? syntaxError(error) : error;
        });
        this.#remember(name, done.map);
        return done.code;
    }

    // Its process may have been hit by an interrupt, which goes to all processes of the run.
    stop() {
        this.#esbuild?.stop();
    }

    async #transform(code, options) {
        this.#esbuild ??= require("esbuild");
        try {
            return await this.#esbuild.transform(code, options);
        } catch (error) {
            if (error.errors?.length > 0) throw error;
            this.stop(); // it was killed: once more with a new one
            return this.#esbuild.transform(code, options);
        }
    }

    #remember(name, map) {
        this.#maps.set(name, { text: map });
        if (this.#maps.size > MAPS_MAX) this.#maps.delete(this.#maps.keys().next().value);
    }

    // `require("./other.ts")`
    #load(module, file) {
        this.#esbuild ??= require("esbuild");
        const options = { ...OPTIONS, format: "cjs", sourcefile: file };
        const { code, map } = this.#esbuild.transformSync(fs.readFileSync(file, "utf8"), options);
        this.#remember(file, map);
        module._compile(code, file);
    }

    // As V8 writes a stack, with the places in the TypeScript.
    #stack(error, frames) {
        const lines = frames.map((frame) => `\n    at ${this.#placed(frame)}`);
        return `${Error.prototype.toString.call(error)}${lines.join("")}`;
    }

    #placed(frame) {
        const text = frame.toString();
        const name = frame.getScriptNameOrSourceURL();
        const known = this.#maps.get(name);
        if (known === undefined) return text;
        known.map ??= new Module.SourceMap(JSON.parse(known.text));
        const [line, column] = [frame.getLineNumber(), frame.getColumnNumber()];
        const { originalLine, originalColumn } = known.map.findEntry(line - 1, column - 1);
        if (originalLine === undefined) return text;
        return text.replace(`:${line}:${column}`, `:${originalLine + 1}:${originalColumn + 1}`);
    }
}

function syntaxError({ errors: [{ text, location }] }) {
    const error = new SyntaxError(text);
    error.place = { lineNumber: location?.line - 1 || 0, columnNumber: location?.column ?? 0 };
    return error;
}

module.exports = { TypeScript };
