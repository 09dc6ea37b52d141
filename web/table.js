// SPDX-License-Identifier: MIT
// The table of processes: only the rows on screen exist, so thousands of processes cost what thirty do. Sorting,
// search and the tree work on the whole list, once a second.
import { TREND } from "./data.js";
import { el, show } from "./format.js";

/** @typedef {import("./data.js").Process} Process */
/** @typedef {{process: Process, twig: string}} Row */

const ROW = 30;
const TEXT_COLUMNS = ["name", "pid", "user"];
/** The columns in the order in which they are shown, and their widths. */
const WIDTHS = /** @type {Record<string, number>} */ ({ name: 220, pid: 76, user: 84, trend: 132, cpu_percent: 92, runq_wait_ns: 92, rss_bytes: 92, gpu_percent: 76, gpu_memory_bytes: 100,
  npu_percent: 76, energy_uj: 84, threads: 76, disk_read_bytes: 100, disk_write_bytes: 100, io_read_bytes: 100, io_write_bytes: 100, net_received_bytes: 100, net_sent_bytes: 100,
  switches_voluntary: 92, switches_involuntary: 96, faults_minor: 84, faults_major: 96, handles: 84 });
/** The most important ones first: where the window is narrow, the others are left out. */
const PRIORITY = ["name", "cpu_percent", "rss_bytes", "pid", "trend", "runq_wait_ns", "user", "gpu_percent", "npu_percent", "energy_uj", "gpu_memory_bytes", "threads", "disk_read_bytes", "disk_write_bytes",
  "io_read_bytes", "io_write_bytes", "net_received_bytes", "net_sent_bytes", "switches_voluntary", "switches_involuntary", "faults_minor", "faults_major", "handles"];
const TITLES = /** @type {Record<string, string>} */ ({ cpu_percent: "CPU", runq_wait_ns: "CPU wait", rss_bytes: "Memory", threads: "Threads", disk_read_bytes: "Disk read",
  disk_write_bytes: "Disk write", io_read_bytes: "Read", io_write_bytes: "Written", faults_minor: "Faults", faults_major: "Hard faults",
  switches_voluntary: "Switches", switches_involuntary: "Preempted", handles: "Handles", net_received_bytes: "Received", net_sent_bytes: "Sent",
  gpu_percent: "GPU", gpu_memory_bytes: "GPU memory", npu_percent: "NPU", energy_uj: "Power", name: "Process", pid: "PID", user: "User", trend: "Last minute" });

export class ProcessTable {
  /** @param {import("./data.js").Store} store @param {{sort: string, up: boolean, tree: boolean, query: string}} view @param {() => void} changed */
  constructor(store, view, changed) {
    this.store = store;
    this.view = view;
    this.changed = changed;
    /** @type {Row[]} */ this.rows = [];
    /** @type {string|null} */ this.selected = null;
    /** @type {Map<number, {key: string, element: HTMLElement}>} */ this.pool = new Map();
    this.head = el("div", { class: "row head", role: "row" });
    this.body = el("div", { class: "body", role: "rowgroup" });
    this.grid = el("div", { class: "grid", role: "table", "aria-label": "Processes" }, this.head, this.body);
    this.scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Processes" }, this.grid);
    this.element = el("div", { class: "table" }, this.scroll);
    this.scroll.addEventListener("scroll", () => this.draw(), { passive: true });
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { this.setColumns(); this.draw(); }).observe(this.scroll);
    this.all = false;
    this.columns = /** @type {string[]} */ ([]);
  }

  setColumns() {
    const has = new Set([...this.store.columns, ...TEXT_COLUMNS, ...(this.store.meta.recorded ? [] : ["trend"])]);
    const width = this.scroll.clientWidth || 1000;
    let left = width;
    const fitting = new Set(PRIORITY.filter((name) => {
      if (!has.has(name)) return false;
      const size = name === "name" && width < 500 ? 130 : WIDTHS[name];
      if (!this.all && size > left && name !== this.view.sort) return false;
      left -= size;
      return true;
    }));
    const columns = Object.keys(WIDTHS).filter((name) => fitting.has(name));
    if (columns.join() === this.columns.join() && this.head.childElementCount) return;
    this.columns = columns;
    this.grid.classList.toggle("all", this.all);
    const template = columns.map((name) => (name === "name" ? `minmax(${width < 500 ? 130 : WIDTHS.name}px, 2fr)` : `minmax(${WIDTHS[name]}px, ${name === "pid" ? "0.5fr" : "1fr"})`)).join(" ");
    this.grid.style.setProperty("--columns", template);
    this.template = template;
    this.pool.forEach((entry) => entry.element.remove());
    this.pool.clear();
    this.drawHead();
  }

  drawHead() {
    this.head.style.gridTemplateColumns = this.template ?? "";
    this.head.replaceChildren(...this.columns.map((name) => {
      if (name === "trend") return el("div", { role: "columnheader", class: "plain" }, TITLES[name]);
      const on = this.view.sort === name;
      const metric = this.store.metrics.get(name);
      const button = el("button", { type: "button", title: metric ? `${metric.help} (${metric.exactness})` : "" },
        TITLES[name] ?? name, on ? el("span", { class: "arrow", "aria-hidden": "true" }, this.view.up ? "▲" : "▼") : "");
      button.addEventListener("click", () => {
        this.view.up = on ? !this.view.up : TEXT_COLUMNS.includes(name);
        this.view.sort = name;
        this.drawHead();
        this.update();
        this.changed();
      });
      return el("div", { role: "columnheader", class: TEXT_COLUMNS.includes(name) && name !== "pid" ? "" : "num",
        "aria-sort": on ? (this.view.up ? "ascending" : "descending") : "none" }, button);
    }));
  }

  /** @returns {(p: Process) => string|number} */
  keyOf() {
    const name = this.view.sort;
    if (name === "name" || name === "user") return (p) => (p[name] ?? "").toLowerCase();
    if (name === "pid") return (p) => p.pid;
    const i = this.store.columns.indexOf(name);
    return (p) => p.values[i] ?? -1;
  }

  /** @returns {Process[]} */
  filtered() {
    const words = this.view.query.toLowerCase().split(/\s+/).filter(Boolean);
    return [...this.store.processes.values()].filter((p) => {
      if (!words.length) return true;
      p.text ??= `${p.name ?? ""} ${p.pid} ${p.user ?? ""} ${p.cgroup ?? ""} ${p.cmdline ?? ""}`.toLowerCase();
      return words.every((word) => /** @type {string} */ (p.text).includes(word));
    });
  }

  update() {
    this.setColumns();
    const key = this.keyOf(), sign = this.view.up ? 1 : -1;
    const keyed = this.filtered().map((process) => ({ process, key: key(process) }));
    keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.process.pid - b.process.pid));
    const list = keyed.map((entry) => entry.process);
    this.rows = this.view.tree ? this.tree(list) : list.map((process) => ({ process, twig: "" }));
    this.body.style.height = `${this.rows.length * ROW}px`;
    this.grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.draw();
  }

  /** Children below their parents, in the order of the list. @param {Process[]} list @returns {Row[]} */
  tree(list) {
    const byPid = new Map(list.filter((p) => !p.exit_ms).map((p) => [p.pid, p]));
    /** @type {Map<Process|null, Process[]>} */ const children = new Map();
    for (const process of list) {
      const parent = process.ppid === null || process.ppid === process.pid ? null : byPid.get(process.ppid) ?? null;
      const siblings = children.get(parent) ?? [];
      siblings.push(process);
      children.set(parent, siblings);
    }
    /** @type {Row[]} */ const rows = [];
    const seen = new Set();
    /** @param {Process|null} parent @param {string} indent */
    const walk = (parent, indent) => {
      const below = children.get(parent) ?? [];
      below.forEach((process, i) => {
        if (seen.has(process)) return;
        seen.add(process);
        const last = i === below.length - 1;
        rows.push({ process, twig: parent === null ? "" : `${indent}${last ? "└ " : "├ "}` });
        walk(process, parent === null ? "" : `${indent}${last ? "  " : "│ "}`);
      });
    };
    walk(null, "");
    for (const process of list) if (!seen.has(process)) rows.push({ process, twig: "" });
    return rows;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 4);
    const last = Math.min(this.rows.length, Math.ceil((this.scroll.scrollTop + this.scroll.clientHeight) / ROW) + 4);
    for (const [index, entry] of this.pool)
      if (index < first || index >= last) { entry.element.remove(); this.pool.delete(index); }
    for (let index = first; index < last; index++) this.drawRow(index);
  }

  /** @param {number} index */
  drawRow(index) {
    const { process, twig } = this.rows[index];
    let entry = this.pool.get(index);
    if (!entry) {
      const cells = this.columns.map((name) => el("div", { role: "cell", class: `cell ${name === "name" || name === "user" || name === "trend" ? name : "num"}` }));
      const element = el("a", { class: "row item", role: "row", "aria-rowindex": index + 2, tabindex: "-1" }, ...cells);
      element.style.gridTemplateColumns = this.template ?? "";
      element.style.top = `${index * ROW}px`;
      this.body.append(element);
      entry = { key: "", element };
      this.pool.set(index, entry);
    }
    const row = /** @type {HTMLAnchorElement} */ (entry.element);
    row.setAttribute("href", `#/process/${process.id}`);
    row.className = `row item${process.exit_ms && !this.store.meta.recorded ? " gone" : ""}${this.selected === process.id ? " selected" : ""}${
      process.fresh && performance.now() - process.fresh < 2500 ? " fresh" : ""}`;
    this.columns.forEach((name, i) => this.fill(/** @type {HTMLElement} */ (row.children[i]), process, name, twig));
  }

  /** @param {HTMLElement} cell @param {Process} process @param {string} name @param {string} twig */
  fill(cell, process, name, twig) {
    if (name === "name") {
      const label = process.name ?? "?";
      if (cell.dataset.text === twig + label) return;
      cell.dataset.text = twig + label;
      cell.replaceChildren(twig ? el("span", { class: "twig" }, twig) : "", label);
      cell.title = process.cmdline ?? label;
      return;
    }
    if (name === "trend") { this.fillTrend(cell, process); return; }
    if (name === "pid" || name === "user") {
      const text = String(process[name] ?? "–");
      if (cell.textContent !== text) cell.textContent = text;
      return;
    }
    const metric = this.store.metrics.get(name);
    const value = this.store.value(process, name);
    const text = metric ? show(metric, value) : "–";
    if (cell.dataset.text !== text) {
      cell.dataset.text = text;
      cell.textContent = text;
      cell.classList.toggle("zero", !value);
      if (name === "cpu_percent" || name === "gpu_percent") {
        const fill = el("i", { class: "fill" });
        fill.style.width = `${Math.min(100, (value ?? 0) / Math.max(1, name === "cpu_percent" ? this.store.meta.cpus : 1))}%`;
        cell.prepend(fill);
      }
    }
  }

  /** CPU of the last minute as a line, one CPU high. @param {HTMLElement} cell @param {Process} process */
  fillTrend(cell, process) {
    const trend = process.trend, last = trend.length ? `${this.store.now} ${process.id}` : "";
    if (cell.dataset.text === last) return;
    cell.dataset.text = last;
    const top = Math.max(25, ...trend);
    const points = trend.map((v, i) => `${(((TREND - trend.length + i) / (TREND - 1)) * 100).toFixed(1)},${(19 - (v / top) * 17).toFixed(1)}`).join(" ");
    let svg = /** @type {SVGSVGElement|null} */ (cell.firstElementChild);
    if (!svg) {
      const space = "http://www.w3.org/2000/svg";
      svg = document.createElementNS(space, "svg");
      svg.setAttribute("viewBox", "0 0 100 20");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      svg.append(document.createElementNS(space, "polyline"));
      cell.append(svg);
    }
    svg.firstElementChild?.setAttribute("points", points);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = this.rows.findIndex((row) => row.process.id === this.selected);
    const page = Math.floor(this.scroll.clientHeight / ROW) - 2;
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 });
    if (event.key in steps && this.rows.length) {
      const to = Math.min(this.rows.length - 1, Math.max(0, (at < 0 ? -1 : at) + steps[event.key]));
      this.selected = this.rows[to].process.id;
      const top = to * ROW;
      if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
      if (top + ROW * 3 > this.scroll.scrollTop + this.scroll.clientHeight) this.scroll.scrollTop = top + ROW * 3 - this.scroll.clientHeight;
      this.draw();
      event.preventDefault();
    } else if (event.key === "Enter" && this.selected && event.target === this.scroll) {
      location.hash = `#/process/${this.selected}`;
    }
  }

  csv() {
    const columns = this.columns.filter((name) => name !== "trend");
    return [columns, ...this.rows.map(({ process }) => columns.map((name) =>
      (name === "name" || name === "pid" || name === "user" ? process[name] : this.store.value(process, name))))];
  }
}
