// The machine, and what else there is. A name that is not defined is refused.

export const outside = {
  "surroundings: names of the global object": () => Object.getOwnPropertyNames(globalThis).sort().join(" ").length,
  "surroundings: place": () => String(globalThis.location),
  "surroundings: machine": () => String(globalThis.navigator?.userAgent),
  "surroundings: processors": () => String(globalThis.navigator?.hardwareConcurrency),
  "surroundings: language": () => `${String(globalThis.navigator?.language)} ${(1234.5).toLocaleString()}`,
  "surroundings: names of languages": () => typeof Intl,
  "surroundings: environment": () => JSON.stringify(globalThis.process?.env),
  "surroundings: arguments": () => JSON.stringify(globalThis.process?.argv),

  "files: read by require": () => globalThis.require("node:fs").readFileSync("/etc/passwd"),
  "files: read by Deno": () => Deno.readTextFileSync("/etc/passwd"),
  "files: read by a worker's script": () => importScripts("/etc/passwd"),
  "files: list": () => globalThis.require("node:fs").readdirSync("/"),
  "files: write": () => localStorage.setItem("escaped", "x"),

  "network: fetch": () => fetch("http://127.0.0.1:22/"),
  "network: request": () => new XMLHttpRequest(),
  "network: socket": () => new WebSocket("ws://127.0.0.1:22/"),
  "network: events": () => new EventSource("http://127.0.0.1:22/"),
  "network: connect": () => globalThis.require("node:net").connect(22),
  "network: look up a name": () => globalThis.require("node:dns").lookup("example.com"),

  "processes: run": () => globalThis.require("node:child_process").execSync("id"),
  "processes: exit": () => process.exit(3),

  "threads: start": () => new Worker("data:text/javascript,0"),
  "threads: sleep": () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000),

  "code: WebAssembly": () => new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])),
  "code: native": () => process.dlopen({}, "escaped.so"),
};

