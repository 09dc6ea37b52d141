// SPDX-License-Identifier: MIT
// The flame graph of the profile samples of a process in a recording: callers above callees, width is samples.
import { get } from "./data.js";
import { el } from "./format.js";

const ROW = 18;

/** @typedef {{name: string, count: number, self: number, below: Map<string, Frame>, depth: number}} Frame */

/** @param {string} folded @returns {Frame} */
export function parseFolded(folded) {
  const root = { name: "all", count: 0, self: 0, below: new Map(), depth: 0 };
  for (const line of folded.split("\n")) {
    const cut = line.lastIndexOf(" "), count = Number(line.slice(cut + 1));
    if (cut <= 0 || !Number.isFinite(count)) continue;
    /** @type {Frame} */ let at = root;
    at.count += count;
    for (const name of line.slice(0, cut).split(";")) {
      let next = at.below.get(name);
      if (!next) at.below.set(name, next = { name, count: 0, self: 0, below: new Map(), depth: at.depth + 1 });
      next.count += count;
      at = next;
    }
    at.self += count;
  }
  return root;
}

export class Flame {
  /** @param {string} id @param {() => [number, number]|null} range */
  constructor(id, range) {
    this.id = id;
    this.range = range;
    /** @type {Frame|null} */ this.root = null;
    /** @type {Frame[]} */ this.path = [];
    this.drawn = "";
    this.closed = false;
    this.state = el("span", { class: "count", role: "status" }, "");
    this.frames = el("div", { class: "flame", role: "list", "aria-label": "Stacks, callers above callees" });
    this.element = el("div", {}, el("div", { class: "bar" }, this.state), this.frames);
  }

  async update() {
    const range = this.range(), query = range ? `from=${Math.floor(range[0])}&to=${Math.ceil(range[1])}` : "from=0";
    if (this.closed || this.drawn === query) return;
    try {
      const got = await get(`/api/v1/processes/${this.id}/stacks?${query}`);
      if (got.stage !== "read") {
        this.state.textContent = "reading the recording…";
        setTimeout(() => void this.update(), 500);
        return;
      }
      this.drawn = query;
      this.root = parseFolded(got.folded);
      this.path = [this.root];
      this.state.textContent = got.problem ?? (this.root.count ? `${this.root.count} samples; click a frame to zoom` : "no profile samples in this part");
      this.draw();
    } catch (error) {
      this.state.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  draw() {
    const focus = this.path[this.path.length - 1], width = 100;
    this.frames.replaceChildren();
    if (!focus || !focus.count) return;
    /** @type {HTMLElement[]} */ const boxes = [];
    let deepest = 0;
    const put = (/** @type {Frame} */ frame, /** @type {number} */ left, /** @type {number} */ size, /** @type {number} */ row, /** @type {() => void} */ action) => {
      const box = el("button", { type: "button", role: "listitem", class: "frame", title: `${frame.name}: ${frame.count} samples (${((frame.count / (this.root?.count || 1)) * 100).toFixed(1)} %), ${frame.self} in itself` }, size > 2 ? frame.name : "");
      box.style.left = `${left}%`;
      box.style.width = `${size}%`;
      box.style.top = `${row * ROW}px`;
      box.style.background = `hsl(${28 + (hash(frame.name) % 26)} 85% ${62 + (hash(frame.name) % 9)}%)`;
      box.addEventListener("click", action);
      boxes.push(box);
      deepest = Math.max(deepest, row);
    };
    this.path.forEach((frame, row) => put(frame, 0, width, row, () => { this.path = this.path.slice(0, row + 1); this.draw(); }));
    const walk = (/** @type {Frame} */ frame, /** @type {Frame[]} */ path, /** @type {number} */ left, /** @type {number} */ row) => {
      let at = left;
      for (const next of [...frame.below.values()].sort((a, b) => b.count - a.count)) {
        const size = (next.count / focus.count) * width;
        if (size < 0.25 || boxes.length > 3000) continue;
        const own = [...path, next];
        put(next, at, size, row, () => { this.path = own; this.draw(); });
        walk(next, own, at, row + 1);
        at += size;
      }
    };
    walk(focus, this.path, 0, this.path.length);
    this.frames.style.height = `${(deepest + 1) * ROW}px`;
    this.frames.replaceChildren(...boxes);
  }

  close() {
    this.closed = true;
  }
}

/** @param {string} text */
function hash(text) {
  let value = 0;
  for (const letter of text.split(/[!+]/)[0]) value = (value * 31 + letter.charCodeAt(0)) >>> 0;
  return value;
}
