// A small HTTP API and its client in one program, which ends when nothing is left to wait for.
//
//     ./dev run examples/server_and_client.js

import { once } from "node:events";
import http from "node:http";

const stock = new Map([["tea", 12], ["cocoa", 0]]);

const server = http.createServer((request, response) => {
    const name = request.url.slice(1);
    const count = stock.get(name);
    response.statusCode = count === undefined ? 404 : 200;
    response.end(JSON.stringify({ name, count }));
});
server.listen(0, "127.0.0.1");
await once(server, "listening");

for (const name of ["tea", "cocoa", "coffee"]) {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/${name}`);
    console.log(answer.status, await answer.json());
}
server.close();
