// The driver's loop: takes a request, runs its code, reports how it went.
//
// A run may be cut off at any point of its code, by an interrupt or by its own process.exit(). Then
// nothing that stands on the stack goes on, our own functions included. So a run is a plain object,
// and whoever comes next (the message that follows a cut) ends it.
"use strict";

const { executionAsyncResource } = require("node:async_hooks");
const { clearInterval, clearTimeout, setImmediate, setInterval } = require("node:timers");
const vm = require("node:vm");
const { MessageChannel } = require("node:worker_threads");
const { Channel } = require("./channel");
const { Displays } = require("./displays");
const { plainReport, report } = require("./errors");
const { Evaluator } = require("./evaluator");
const { Modules } = require("./modules");
const { Request } = require("./request");
const { Stacks } = require("./stacks");
const { Streams } = require("./streams");
const { translate } = require("./translate");
const { Number, Object, process } = globalThis;

const WATCH_MS = 20;
const FAILED = 1;
const UNSETTLED = 13; // as Node ends if what its program awaits can never come
const INTERRUPTED = 130;
const WHY_UNSETTLED = "what the code awaits can never come: nothing is left that could settle it";
const NO_STDIN = "this run has no stdin: send `stdin` with the run, or pipe text into `cloister run`";

class Driver {
    #language;
    #channel;
    #streams;
    #evaluator = new Evaluator();
    #modules = new Modules(this.#evaluator.take);
    #displays;
    #typescript;
    #run; // what is running: a Request with `exitCode` once that is known
    #count = 0;
    #afterExit = new MessageChannel();
    // An interrupt may have hit a timer. Node then counts one too many for ever, and no longer knows
    // whether timers keep the event loop alive: from then on the port does, also during runs.
    #wasCutOff = false;
    #exitListeners = new Set(process.listeners("exit"));
    #last = { _: undefined, _error: undefined };

    constructor(language, fd) {
        const stacks = new Stacks();
        this.#language = language;
        this.#channel = new Channel(fd);
        this.#streams = new Streams(this.#channel);
        this.#displays = new Displays(this.#channel, this.#streams);
        if (language === "typescript") {
            const { TypeScript } = require("./typescript");
            this.#typescript = new TypeScript(stacks);
        }
        for (const name of Object.keys(this.#last)) this.#offerLast(name);
    }

    serve() {
        process.exit = (code) => this.#exit(code);
        process.reallyExit = die;
        this.#keepHandlers();
        this.#afterExit.port2.on("message", () => this.#finish(this.#run));
        this.#afterExit.port2.unref();
        this.#channel.listen((message) => this.#take(message));
        const version = process.versions.node;
        this.#channel.send("kernel_info_reply", { language: this.#language, version });
    }

    #take({ msg_type: kind, content }) {
        if (kind === "interrupt") this.#channel.hear(content.asked);
        if (kind === "cut_off") {
            this.#wasCutOff = true;
            this.#channel.wasCutOff(content.asked);
        }
        if (kind === "execute_request") this.#begin(content);
        else if (this.#run !== undefined) this.#interrupt(this.#run);
    }

    // --- One run ---

    #begin(content) {
        const run = new Request(content, ++this.#count);
        this.#run = run;
        this.#keepHandlers();
        this.#streams.beginRun();
        this.#channel.inRun = true;
        this.#start(run).catch((error) => this.#giveUp(run, error));
    }

    async #start(run) {
        run.enter(this.#streams, this.#modules);
        this.#channel.send("status", { execution_state: "busy" });
        if (this.#typescript === undefined) {
            return this.#evaluate(run, run.isProgram ? run.code : asExpression(run.code));
        }
        const code = await this.#withoutTypes(run); // meanwhile the port keeps the event loop alive
        if (this.#run === run) this.#evaluate(run, code);
    }

    async #withoutTypes({ code, name, isProgram }) {
        if (!isProgram && mayBeObject(code)) {
            try {
                return await this.#typescript.strip(`(${code}\n)`, name);
            } catch (error) {
                if (error.place === undefined) throw error;
            }
        }
        return this.#typescript.strip(code, name);
    }

    #evaluate(run, code) {
        // From now on, an event loop with nothing to wait for is noticed.
        if (!this.#wasCutOff) this.#channel.letGo();
        if (run.isProgram) run.waitsBefore = process.getActiveResourcesInfo().length;
        const source = translate(code, !run.isProgram, run.clashes);
        this.#evaluator.evaluate(source, run.name, (outcome) => {
            if (this.#run === run && this.#meetsClash(run, outcome, code, source)) this.#evaluate(run, code);
            else this.#onOutcome(run, outcome, source).catch((error) => this.#giveUp(run, error));
        });
    }

    async #onOutcome(run, outcome, source) {
        if (this.#run !== run || run.exits) return;
        if (outcome === undefined || this.#channel.isInterrupted) return this.#onCutShort(run);
        if (outcome.details !== undefined) {
            this.#last._error = outcome.thrown;
            this.#fail(run, report(outcome.thrown, run.name, { ...outcome.details, source }));
        } else if (!run.isProgram && outcome.value !== undefined) {
            await this.#show(run, outcome.value);
        }
        run.isEvaluated = true;
        // A cell ends here, when rejections that nobody handles have been noticed; a program goes on
        // until nothing of it is left to wait for.
        if (!run.isProgram || run.exitCode !== undefined) setImmediate(() => this.#finish(run));
        else if (run.waitsBefore > 0 || this.#wasCutOff) this.#watch(run);
    }

    // Whether the cell declares a name that is there in a way which V8 does not let it. Then none of it has run, whatever
    // the error may look like, and it may be tried again with another word.
    #meetsClash(run, outcome, code, source) {
        const name = run.nameOfClash(outcome);
        const kind = name && this.#evaluator.wordFor(name);
        if (kind === undefined) return false;
        run.clashes.set(name, kind);
        return translate(code, true, run.clashes) !== source;
    }

    // What earlier runs left in the background keeps the event loop alive.
    #watch(run) {
        const timer = setInterval(() => {
            const over = process.getActiveResourcesInfo().length <= run.waitsBefore;
            if (over) this.#finish(run);
            if (this.#run !== run) clearInterval(timer);
        }, WATCH_MS);
        timer.unref();
    }

    async #show(run, value) {
        this.#last._ = value;
        try {
            await this.#displays.showResult(value, this.#count);
        } catch (error) {
            this.#fail(run, report(error, run.name));
        }
    }

    #fail(run, content, exitCode = FAILED) {
        run.exitCode ??= exitCode;
        this.#channel.send("error", content);
        this.#streams.messageSent();
    }

    // Code that cannot be run.
    #giveUp(run, error) {
        const details = error.place && { ...error.place, source: run.code };
        this.#fail(run, report(error, run.name, details));
        this.#finish(run);
    }

    #finish(run) {
        if (run === undefined || this.#run !== run) return;
        run.exitCode ??= Number(process.exitCode ?? 0);
        if (run.isProgram) this.#callExitListeners(run);
        this.#channel.hold();
        this.#channel.inRun = false;
        this.#run = undefined;
        try {
            this.#evaluator.forget();
            process.exitCode = undefined;
            run.leave(this.#streams);
        } finally {
            this.#reply(run.exitCode & 0xff);
        }
    }

    #reply(exitCode) {
        this.#channel.send("execute_reply", {
            status: exitCode === 0 ? "ok" : "error",
            execution_count: this.#count,
            exit_code: exitCode,
            cwd: workingDirectory(),
        });
    }

    // --- Ends that the code does not come to by itself ---

    #interrupt(run) {
        // A child that the signal ended may have made the code fail first.
        if (run.exitCode === undefined) {
            this.#fail(run, plainReport("Interrupted", "the run was interrupted"));
        }
        if (!run.exits) run.exitCode = INTERRUPTED;
        this.#typescript?.stop();
        this.#finish(run);
    }

    // process.exit() ends the run, and all JavaScript that is on the stack.
    #exit(code) {
        const run = this.#run;
        if (run !== undefined) {
            run.exitCode = Number(code ?? process.exitCode ?? 0) & 0xff;
            run.exits = true;
            this.#callExitListeners(run);
            this.#channel.hold();
        }
        this.#afterExit.port1.postMessage(null);
        clearTimeout(executionAsyncResource()); // if a timer calls us, Node will not see it end
        this.#evaluator.cutOff();
    }

    #callExitListeners(run) {
        if (run.hasCalledListeners) return;
        run.hasCalledListeners = true;
        for (const listener of process.listeners("exit")) {
            if (listener === die || this.#exitListeners.has(listener)) continue;
            process.removeListener("exit", listener);
            try {
                listener.call(process, run.exitCode);
            } catch (error) {
                this.#onUncaught(error);
            }
        }
    }

    // The event loop has nothing to wait for.
    #onNothingLeft() {
        const run = this.#run;
        if (run === undefined) return this.#channel.hold();
        const wakes = process.listenerCount("beforeExit") > 1 && process.getActiveResourcesInfo().length > 0;
        if (wakes) return;
        if (run.isEvaluated) this.#finish(run);
        else this.#onCutShort(run);
    }

    #onCutShort(run) {
        if (this.#channel.isInterrupted) return this.#channel.hold(); // the message is on its way
        if (!run.exits) {
            const hint = this.#streams.wasAsked && !run.hasStdin ? ` (${NO_STDIN})` : "";
            this.#fail(run, plainReport("Error", WHY_UNSETTLED + hint), UNSETTLED);
        }
        this.#finish(run);
    }

    // Errors of timers and events, and rejections that nobody handles.
    #onUncaught(error) {
        if (process.listenerCount("uncaughtException") > 1) return; // the code handles them itself
        const run = this.#run;
        const content = report(error, run?.name ?? "");
        if (run === undefined || run.exitCode !== undefined) {
            process.stderr.write(`Uncaught ${content.traceback.join("\n")}\n`);
        } else {
            this.#fail(run, content);
        }
        if (run?.isProgram) this.#finish(run);
    }

    // User code may have removed them; those of Node's own are what makes a handler of signals one.
    #handlers = [
        ...["newListener", "removeListener"].flatMap((event) =>
            process.listeners(event).map((handler) => [event, handler]),
        ),
        ["SIGINT", ignore],
        ["exit", die],
        ["beforeExit", () => process.nextTick(() => this.#onNothingLeft())],
        ["uncaughtException", (error) => this.#onUncaught(error)],
    ];

    #keepHandlers() {
        for (const [event, handler] of this.#handlers) {
            if (!process.listeners(event).includes(handler)) process.on(event, handler);
        }
    }

    // `_` is the last result, `_error` the last error, until the user declares the name.
    #offerLast(name) {
        Object.defineProperty(globalThis, name, {
            configurable: true,
            enumerable: false,
            get: () => this.#last[name],
            set: (value) => {
                const shape = { value, configurable: true, enumerable: true, writable: true };
                Object.defineProperty(globalThis, name, shape);
            },
        });
    }
}

// Node would wait for its threads, and ours waits for the agent.
function die() {
    process.kill(process.pid, "SIGKILL");
}

// Interrupts come as messages too; the signal is for the children.
function ignore() {}

// `{a: 1}` is an object for whoever types it, not a block with a label.
function mayBeObject(code) {
    return /^\s*\{/.test(code) && !/;\s*$/.test(code);
}

function asExpression(code) {
    if (!mayBeObject(code)) return code;
    try {
        new vm.Script(`(async () => (${code}\n))`);
    } catch {
        return code;
    }
    return `(${code}\n)`;
}

function workingDirectory() {
    try {
        return process.cwd();
    } catch {
        return ""; // user code removed it
    }
}

module.exports = { Driver };
