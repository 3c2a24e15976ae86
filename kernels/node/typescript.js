// TypeScript: esbuild takes the types out. It is started when the first code needs it, and kept.
"use strict";

const fs = require("node:fs");
const Module = require("node:module");
const { TYPED } = require("./modules");
const { Array, SyntaxError } = globalThis;

const OPTIONS = {
    loader: "ts",
    target: "node20",
    sourcemap: "external",
    sourcesContent: false,
    logLevel: "silent",
    // An import that this code does not use may be meant for the next run.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, experimentalDecorators: true } },
};

class TypeScript {
    #esbuild;
    #stacks;

    constructor(stacks) {
        this.#stacks = stacks;
        for (const extension of TYPED) {
            Module._extensions[extension] = (module, file) => this.#load(module, file);
        }
    }

    // Throws a SyntaxError that has `place`, if the code is none.
    async strip(code, name) {
        const options = { ...OPTIONS, sourcefile: name };
        const done = await this.#transform(code, options).catch((error) => {
            throw Array.isArray(error.errors) && error.errors.length > 0 ? syntaxError(error) : error;
        });
        this.#stacks.remember(name, done.map);
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

    // `require("./other.ts")`
    #load(module, file) {
        this.#esbuild ??= require("esbuild");
        const options = { ...OPTIONS, format: "cjs", sourcefile: file };
        const { code, map } = this.#esbuild.transformSync(fs.readFileSync(file, "utf8"), options);
        this.#stacks.remember(file, map);
        module._compile(code, file);
    }
}

function syntaxError({ errors: [{ text, location }] }) {
    const error = new SyntaxError(text);
    error.place = { lineNumber: location?.line - 1 || 0, columnNumber: location?.column ?? 0 };
    return error;
}

module.exports = { TypeScript };
