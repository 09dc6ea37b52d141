// SPDX-License-Identifier: MIT
// Processes of the history on disk, also those of earlier runs of etwatch.
import { get } from "./data.js";
import { day, duration, el } from "./format.js";
import { absoluteRange, store, view } from "./view.js";

/** @typedef {{id: string, pid: number, ppid: number, name: string, user: string, start_ms: number, last_ms: number, exit_ms: number|null}} Stored */

const ROWS = 200;

/** Those with records in a range, latest first. @param {number} from @param {number} to @returns {Promise<Stored[]>} */
export async function storedProcesses(from, to) {
  return (await get(`/api/v1/store/processes?from=${Math.max(1, Math.floor(from))}&to=${Math.ceil(to)}`)).processes;
}

export class Earlier {
  constructor() {
    this.rows = el("tbody");
    this.state = el("p", { class: "count", role: "status" }, "");
    const head = ["Process", "PID", "User", "Started", "Ended", "Known for"];
    this.element = el("section", { class: "card earlier" }, el("h2", {}, "Processes of the history on disk"), this.state, el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Processes of the history on disk" },
      el("table", { class: "threads" }, el("thead", {}, el("tr", {}, ...head.map((h, i) => el("th", { scope: "col", class: i === 1 || i === 5 ? "num" : "" }, h)))), this.rows)));
    this.read = 0;
    this.range = "";
    /** @type {Stored[]} */ this.found = [];
  }

  /** Reads at most every 10 s: records are written that often. */
  async update() {
    const [from, to] = absoluteRange(), range = view.from ? `${from} ${to}` : String(view.span);
    if (range === this.range && performance.now() - this.read < 10000) { this.draw(); return; }
    this.range = range;
    this.read = performance.now();
    try {
      this.found = await storedProcesses(from, to);
    } catch (error) {
      this.found = [];
      this.state.textContent = error instanceof Error ? error.message : String(error);
      return;
    }
    this.draw();
  }

  draw() {
    const wanted = view.query.toLowerCase(), found = this.found.filter((p) => `${p.name} ${p.pid} ${p.user}`.toLowerCase().includes(wanted));
    this.state.textContent = `${found.length} process${found.length === 1 ? "" : "es"} with records in this range${found.length > ROWS ? `, the latest ${ROWS} are listed: search, or choose a shorter range` : ""}`;
    this.rows.replaceChildren(...found.slice(0, ROWS).map((p) => {
      const live = store.processes.get(p.id), running = live && !live.exit_ms, end = p.exit_ms ?? p.last_ms;
      const query = running ? (view.span === 60e3 ? "" : `?span=${view.span}`) : "";
      return el("tr", {}, el("td", {}, el("a", { href: `#/process/${p.id}${query}` }, p.name || "?")), el("td", { class: "num" }, String(p.pid)), el("td", {}, p.user || "–"),
        el("td", {}, day(p.start_ms)), el("td", {}, running ? "running" : p.exit_ms ? day(p.exit_ms) : `after ${day(p.last_ms)}`), el("td", { class: "num" }, duration(Math.max(0, end - p.start_ms) * 1e6)));
    }));
  }
}
