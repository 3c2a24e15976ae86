// The thread that reads what the agent sends. It waits in a read, and passes requests on to the main
// thread. It also interrupts: while JavaScript loops, no handler of the main thread could.
"use strict";

const fs = require("node:fs");
const { workerData } = require("node:worker_threads");
const { Word, Gate } = require("./words");

const GENTLE_MS = 60; // an event loop that turns takes an interrupt up by itself
const FIRM_MS = 400; // a message that is on its way may take this long; then the agent kills
const LENGTH_BYTES = 4;

const { fd, port, words } = workerData;

function read(size) {
    const bytes = Buffer.allocUnsafeSlow(size);
    for (let have = 0; have < size; ) {
        try {
            const got = fs.readSync(fd, bytes, have, size - have, null);
            if (got === 0) process.kill(process.pid, "SIGKILL"); // the agent is gone
            have += got;
        } catch (error) {
            if (error.code !== "EINTR") throw error;
        }
    }
    return bytes;
}

function receive() {
    return JSON.parse(read(read(LENGTH_BYTES).readUInt32LE()).toString());
}

function heard(asked, patience) {
    const end = Date.now() + patience;
    for (;;) {
        const seen = Atomics.load(words, Word.Heard);
        const left = end - Date.now();
        if (seen >= asked || left <= 0) return seen >= asked;
        Atomics.wait(words, Word.Heard, seen, left);
    }
}

function shutGate() {
    const end = Date.now() + FIRM_MS;
    while (Atomics.compareExchange(words, Word.Gate, Gate.Open, Gate.Ending) !== Gate.Open) {
        if (Date.now() > end) return false;
        Atomics.wait(words, Word.Gate, Gate.Held, 10);
    }
    return true;
}

function interrupt() {
    const asked = Atomics.add(words, Word.Asked, 1) + 1;
    Atomics.notify(words, Word.Replies); // a sync that waits goes on
    port.postMessage({ msg_type: "interrupt", content: { asked } });
    if (heard(asked, GENTLE_MS) || !shutGate()) return;
    const { Session } = require("node:inspector");
    const session = new Session();
    session.connectToMainThread();
    session.post("Runtime.terminateExecution");
    session.disconnect();
    port.postMessage({ msg_type: "cut_off", content: { asked } });
}

for (;;) {
    const message = receive();
    if (message.msg_type === "stream_sync_reply") {
        Atomics.add(words, Word.Replies, 1);
        Atomics.notify(words, Word.Replies);
    } else if (message.msg_type === "interrupt_request") {
        interrupt();
    } else {
        port.postMessage(message);
    }
}
