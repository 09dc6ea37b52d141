// SPDX-License-Identifier: MIT
// Perfetto's trace processor as its UI runs it, without a browser: the engine of a web worker and its
// WebAssembly, from a folder that has the UI's files.
//
// usage: node trace_processor.js FOLDER TRACE QUERIES
//
// QUERIES is a file with one query per line; each is answered by a line of JSON: rows
// of values, or the error as a string.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, trace, queryFile] = process.argv.slice(2);
const queries = fs.readFileSync(queryFile, "utf8").split("\n").filter((line) => line !== "");

// ---- protobuf: only what requests and answers need

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}

function field(number, body) {
  return typeof body === "number"
    ? Buffer.from([...varint(number * 8), ...varint(body)])
    : Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(body.length)]), body]);
}

function* varints(data) {
  for (let at = 0; at < data.length;) {
    let value = 0n, shift = 0n, byte;
    do {
      byte = data[at++];
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
    } while (byte > 127);
    yield [value, at];
  }
}

function* fields(data) {
  for (let at = 0; at < data.length;) {
    const read = () => {
      const [value, end] = varints(data.subarray(at)).next().value;
      at += end;
      return Number(value);
    };
    const tag = read(), wire = tag & 7;
    const size = wire === 0 ? 0 : wire === 1 ? 8 : wire === 5 ? 4 : read();
    yield [tag >> 3, wire === 0 ? read() : data.subarray(at, (at += size))];
  }
}

// ---- the worker

// The environment that the engine expects in a worker. Its files are read from the folder synchronously.
class XMLHttpRequest {
  open(method, url) { this.url = String(url); }
  send() {
    this.response = new Uint8Array(fs.readFileSync(path.join(folder, path.basename(this.url)))).buffer;
    this.status = 200;
  }
}

const sandbox = {
  console: new console.Console(process.stderr), XMLHttpRequest, URL, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout,
  crypto: globalThis.crypto,
  importScripts() {},
  WorkerGlobalScope: class {},
  location: { href: "http://localhost/engine_bundle.js" },
};
sandbox.self = sandbox.globalThis = sandbox;
vm.createContext(sandbox);
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), sandbox);

const bytesOf = vm.runInContext("(bytes) => new Uint8Array(bytes)", sandbox);
let seq = 0;
let waiting = null;
const port = {
  postMessage(bytes) { waiting(Buffer.from(bytes)); },
};
sandbox.onmessage({ data: port });

// Answers arrive while the request runs; a long one in several pieces, with a flag in the last one.
function request(method, ...parts) {
  const pieces = [];
  waiting = (bytes) => pieces.push(bytes);
  const message = Buffer.concat([field(1, ++seq), field(2, method), ...parts]);
  port.onmessage({ data: bytesOf(field(1, message)) });
  return pieces.flatMap((piece) => [...fields(piece)]).map(([, body]) => [...fields(body)]);
}

const APPEND = 1, FINALIZE = 2, QUERY = 3, NULL = 1, NUMBER = 2, DOUBLE = 3, TEXT = 4;

function cells(batch) {
  const parts = new Map([...fields(batch)].filter(([, body]) => typeof body !== "number"));
  const numbers = varints(parts.get(2) ?? Buffer.alloc(0));
  const texts = (parts.get(5) ?? Buffer.alloc(0)).toString("utf8").split("\0");
  let doubles = 0;
  return [...varints(parts.get(1) ?? Buffer.alloc(0))].map(([kind]) => {
    if (Number(kind) === NULL) return null;
    if (Number(kind) === NUMBER) return Number(BigInt.asIntN(64, numbers.next().value[0]));
    if (Number(kind) === DOUBLE) return parts.get(3).readDoubleLE(8 * doubles++);
    if (Number(kind) === TEXT) return texts.shift();
    return "(bytes)";
  });
}

function query(sql) {
  const all = [], columns = [];
  for (const answer of request(QUERY, field(103, field(1, Buffer.from(sql)))))
    for (const [number, body] of answer) {
      if (number !== 203) continue;
      for (const [part, value] of fields(body)) {
        if (part === 1) columns.push(value.toString());
        if (part === 2) return value.toString();
        if (part === 3) all.push(...cells(value));
      }
    }
  const rows = [];
  while (all.length > 0) rows.push(all.splice(0, columns.length));
  return rows;
}

async function main() {
  await new Promise(setImmediate); // lets the engine run its deferred work
  request(APPEND, field(101, fs.readFileSync(trace)));
  request(FINALIZE);
  for (const sql of queries) process.stdout.write(JSON.stringify(query(sql)) + "\n");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
