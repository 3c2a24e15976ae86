// What a CommonJS file of the working directory has (require, module, __filename …), as globals, and
// the helper that translated imports call.
"use strict";

const Module = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { Object, String, SyntaxError, process } = globalThis;

const HELPER = "__cloister__";
const TYPED = [".ts", ".cts", ".mts"];
// The whole of a CommonJS file that hands out what it has.
const SCOPE = `module.exports = {
    require, module, __filename, __dirname, importer: (specifier, options) => import(specifier, options),
};`;

class Modules {
    #filename;
    #require;
    #importer;
    #helper;

    // `take` gets values that the inspector hands over.
    constructor(take) {
        this.#helper = {
            take,
            import: (specifier, options) => this.#import(specifier, options),
            names: (names, specifier, options) => this.#names(names, specifier, options),
        };
        define(HELPER, this.#helper);
        for (const name of Module.builtinModules) offerBuiltin(name);
    }

    // The code of a run belongs to the file of that name, whether there is one or not. That of a
    // program is the main module.
    enter(filename, isProgram) {
        process.mainModule = undefined;
        if (filename === this.#filename && !isProgram) return;
        this.#filename = filename;
        const module = new Module(filename);
        module.filename = filename;
        module.paths = Module._nodeModulePaths(path.dirname(filename));
        if (isProgram) process.mainModule = module;
        module._compile(SCOPE, filename);
        const { importer, ...scope } = module.exports;
        this.#importer = importer;
        this.#require = scope.require;
        module.exports = scope.exports = {};
        for (const [name, value] of Object.entries(scope)) define(name, value);
        this.#helper.meta = metaOf(filename, scope.require);
    }

    // As `import()` in that file.
    async #import(specifier, options) {
        const typed = this.#typedFile(specifier);
        if (typed !== undefined) return this.#require(typed);
        return this.#importer(specifier, options);
    }

    // The path of a TypeScript file, which Node's own import() would not take.
    #typedFile(specifier) {
        if (!Module._extensions[TYPED[0]] || !/^\.{0,2}\//.test(specifier)) return undefined;
        try {
            const file = this.#require.resolve(String(specifier));
            return TYPED.includes(path.extname(file)) ? file : undefined;
        } catch {
            return undefined; // import() says why
        }
    }

    // As an import statement, which does not take a name that is not there.
    async #names(names, specifier, options) {
        const space = await this.#import(specifier, options);
        const missing = names.find((name) => !(name in space));
        if (missing === undefined) return space;
        const from = `The requested module '${specifier}'`;
        throw new SyntaxError(`${from} does not provide an export named '${missing}'`);
    }
}

// Not enumerable: a loop over the globals shows those of the user.
function define(name, value) {
    const shape = { value, writable: true, configurable: true, enumerable: false };
    Object.defineProperty(globalThis, name, shape);
}

// `fs`, `path` and so on without require, as in Node's REPL; loaded when they are used.
function offerBuiltin(name) {
    if (name.startsWith("_") || name.includes("/") || name in globalThis) return;
    const get = () => {
        const value = process.getBuiltinModule(name);
        define(name, value);
        return value;
    };
    const set = (value) => define(name, value);
    Object.defineProperty(globalThis, name, { get, set, configurable: true, enumerable: false });
}

function metaOf(filename, require) {
    const resolve = (specifier) => {
        const found = require.resolve(specifier);
        return path.isAbsolute(found) ? pathToFileURL(found).href : `node:${found.replace(/^node:/, "")}`;
    };
    return { filename, dirname: path.dirname(filename), url: pathToFileURL(filename).href, resolve };
}

module.exports = { Modules, TYPED };
