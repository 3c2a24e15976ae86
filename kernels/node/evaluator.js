// Runs code in the global scope as a REPL does, through the inspector of this very thread: top-level
// await, and `let`, `const` and `class` may be declared anew.
"use strict";

const { Session } = require("node:inspector");
const { BigInt, Number, Object } = globalThis;

const GROUP = "run";
const TAKE = `function (value) { "use strict"; __cloister__.take(value); }`;

class Evaluator {
    #session = new Session();
    // Ends JavaScript while the other session is busy with it.
    #ender = new Session();
    #taken;

    constructor() {
        this.#session.connect();
        this.#ender.connect();
    }

    // For Modules: the inspector hands values over by calling it.
    take = (value) => {
        this.#taken = value;
    };

    // Answers {value} or {thrown, details} when the code has come to its end, or nothing if it never
    // can: what it awaits has been thrown away. Without an answer the code was cut off.
    evaluate(code, name, answer) {
        const expression = `${code}\n//# sourceURL=${name}`;
        const options = { expression, replMode: true, awaitPromise: true, silent: true, objectGroup: GROUP };
        this.#session.post("Runtime.evaluate", options, (error, response) => answer(this.#outcome(error, response)));
    }

    // The word that may declare a name anew: `var` over variables and functions, `let` over what else there is.
    wordFor(name) {
        if (Object.getOwnPropertyDescriptor(globalThis, name)?.configurable === false) return "var";
        let names = [];
        this.#session.post("Runtime.globalLexicalScopeNames", {}, (error, answer) => (names = answer?.names ?? []));
        return names.includes(name) ? "let" : undefined;
    }

    // The values of the run are the garbage collector's again.
    forget() {
        this.#session.post("Runtime.releaseObjectGroup", { objectGroup: GROUP });
    }

    // Ends all JavaScript that runs now, up to the event loop; no `catch` or `finally` of it runs.
    cutOff() {
        this.#ender.post("Runtime.terminateExecution");
        for (;;);
    }

    #outcome(error, response) {
        if (error) return undefined;
        const { result, exceptionDetails: details } = response;
        if (details === undefined) return { value: this.#valueOf(result) };
        return { thrown: this.#valueOf(details.exception ?? result), details };
    }

    #valueOf(remote) {
        if (remote.objectId !== undefined) return this.#fetch(remote.objectId);
        const text = remote.unserializableValue;
        if (text === undefined) return remote.value;
        return text.endsWith("n") ? BigInt(text.slice(0, -1)) : Number(text);
    }

    #fetch(objectId) {
        const options = { objectId, functionDeclaration: TAKE, arguments: [{ objectId }], silent: true };
        this.#session.post("Runtime.callFunctionOn", options);
        const value = this.#taken;
        this.#taken = undefined;
        return value;
    }
}

module.exports = { Evaluator };
