// SPDX-License-Identifier: MIT
// What is on screen as files: CSV, PNG, and a trace for the Perfetto UI (protobuf, written here: a dozen fields).
import { csvField, download, el } from "./format.js";

/** @typedef {{pid: number, name: string, tid?: number}} Owner */
/** @typedef {{name: string, unit: string, times: number[], values: (number|null)[]}} Counter times in milliseconds */
/** @typedef {{tid: number, name: string, slices: {from_ms: number, to_ms: number, text: string}[]}} Lane */

/** @param {string} name @param {unknown[][]} rows */
export function saveCsv(name, rows) {
  download(`${name}.csv`, rows.map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n", "text/csv");
}

/** The charts on screen, one below the other, each with its title and legend. @param {string} name @param {string} title */
export function savePng(name, title) {
  const sources = /** @type {HTMLCanvasElement[]} */ ([...document.querySelectorAll("main canvas")]).filter((c) => c.width && c.height && c.offsetParent);
  const scale = devicePixelRatio, gap = 16 * scale;
  const out = document.createElement("canvas");
  out.width = Math.max(300, ...sources.map((c) => c.width)) + 2 * gap;
  out.height = sources.reduce((sum, c) => sum + c.height + 46 * scale, 50 * scale);
  const context = out.getContext("2d");
  if (!context) return;
  const style = getComputedStyle(document.body);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, out.width, out.height);
  context.fillStyle = style.color;
  context.font = `600 ${16 * scale}px ${style.fontFamily}`;
  context.fillText(title, gap, 28 * scale);
  let y = 50 * scale;
  for (const canvas of sources) {
    const card = canvas.closest(".card");
    context.font = `600 ${12 * scale}px ${style.fontFamily}`;
    context.fillText(card?.querySelector("h2")?.firstChild?.textContent ?? "", gap, y + 12 * scale);
    context.font = `${11 * scale}px ${style.fontFamily}`;
    const legend = [...(card?.querySelectorAll(".legend span") ?? [])].map((s) => s.textContent).join("   ");
    context.fillText(legend || (card?.querySelector(".figure")?.textContent ?? ""), gap, y + 28 * scale);
    context.drawImage(canvas, gap, y + 34 * scale);
    y += canvas.height + 46 * scale;
  }
  out.toBlob((blob) => { if (blob) download(`${name}.png`, blob, "image/png"); });
}

// ---------------------------------------------------------------- Perfetto: protobuf by field number

/** @param {number|bigint} value */
function varint(value) {
  const bytes = [];
  for (let v = BigInt(value); ; v >>= 7n) {
    if (v < 128n) return [...bytes, Number(v)];
    bytes.push(Number(v & 127n) | 128);
  }
}
/** @param {number} field @param {number|bigint} value */
const num = (field, value) => [...varint(field << 3), ...varint(value)];
/** @param {number} field @param {number[]|Uint8Array} bytes */
const sub = (field, bytes) => [...varint((field << 3) | 2), ...varint(bytes.length), ...bytes];
/** @param {number} field @param {string} text */
const str = (field, text) => sub(field, new TextEncoder().encode(text));
/** @param {number} field @param {number} value */
const real = (field, value) => [...varint((field << 3) | 1), ...new Uint8Array(new Float64Array([value]).buffer)];
const ns = (/** @type {number} */ ms) => BigInt(Math.round(ms * 1000)) * 1000n;
const packet = (/** @type {number[]} */ body) => sub(1, [...body, ...num(10, 1)]); // one sequence
const BEGIN = 1, END = 2, COUNTER = 4;

/**
 * The trace of a process: counters, and what its threads did.
 * @param {Owner} owner @param {Counter[]} counters @param {Lane[]} lanes
 */
export function perfetto(owner, counters, lanes) {
  /** @type {Uint8Array<ArrayBuffer>[]} */ const parts = [];
  const put = (/** @type {number[]} */ bytes) => parts.push(new Uint8Array(bytes));
  put(packet(sub(60, [...num(1, 1), ...sub(3, [...num(1, owner.pid), ...str(6, owner.name)])])));
  counters.forEach((counter, i) => {
    const uuid = 1000 + i;
    put(packet(sub(60, [...num(1, uuid), ...num(5, 1), ...str(2, counter.name), ...sub(8, str(6, counter.unit))])));
    counter.times.forEach((ms, at) => {
      const value = counter.values[at];
      if (value !== null && value !== undefined) put(packet([...num(8, ns(ms)), ...sub(11, [...num(9, COUNTER), ...num(11, uuid), ...real(44, value)])]));
    });
  });
  lanes.forEach((lane) => {
    const uuid = 1e6 + lane.tid;
    put(packet(sub(60, [...num(1, uuid), ...num(5, 1), ...sub(4, [...num(1, owner.pid), ...num(2, lane.tid), ...str(5, lane.name)])])));
    for (const slice of lane.slices) {
      put(packet([...num(8, ns(slice.from_ms)), ...sub(11, [...num(9, BEGIN), ...num(11, uuid), ...str(23, slice.text)])]));
      put(packet([...num(8, ns(slice.to_ms)), ...sub(11, [...num(9, END), ...num(11, uuid)])]));
    }
  });
  return new Blob(parts);
}

/** @param {string} name @param {Owner} owner @param {Counter[]} counters @param {Lane[]} lanes */
export function savePerfetto(name, owner, counters, lanes) {
  download(`${name}.pftrace`, perfetto(owner, counters, lanes), "application/octet-stream");
}

/** @param {[string, string, () => void][]} choices label, title, action */
export function exportBar(choices) {
  return el("div", { class: "segmented", role: "group", "aria-label": "Export what is on screen" }, ...choices.map(([label, title, action]) => {
    const button = el("button", { type: "button", title }, label);
    button.addEventListener("click", action);
    return button;
  }));
}
