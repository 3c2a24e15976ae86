// Entry: `node --no-force-async-hooks-checks main.js LANGUAGE`, with fd 3 a socket to the agent.
//
// The JavaScript and TypeScript interpreter of a sandbox: a driver that runs code for cloister-agent.
// It speaks the driver half of contract/agent-protocol.md.
//
//     words, reader, channel    messages from and to the agent, interrupts
//     streams                   stdin, stdout and stderr, and their order
//     lexer, translate          `import` and `export` in a script
//     typescript                the types taken out by esbuild
//     modules                   require, import, and what else a file has
//     evaluator                 code in the global scope, through the inspector
//     plain, displays           values and displays as MIME bundles
//     errors                    what was thrown, as plain data
//     request, driver           one run; the loop
//
// What the code of a run declares at its top, say `class Map {}`, is seen by all scripts. So each file
// takes what it needs of the globals when it is loaded, before there was any such code.
//
// The option: an interrupt may cut JavaScript off anywhere, which the checks of async_hooks would
// take for a corrupted stack, and abort.
"use strict";

const { Driver } = require("./driver");

process.execArgv = []; // what user code forks needs no option of ours
new Driver(process.argv[2] ?? "javascript", 3).serve();
