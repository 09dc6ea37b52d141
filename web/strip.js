// SPDX-License-Identifier: MIT
// When the threads of a process ran, waited for a CPU and waited for a disk, to the microsecond, and which thread took
// the CPU. Requested only while it is open: the server reads the scheduler for it.
import { get } from "./data.js";
import { clock, el, micros } from "./format.js";

const ROW = 22, LABEL = 150, AXIS = 20;
const KINDS = ["ran", "waited for a CPU", "slept", "waited for a disk"];
const STYLES = ["--run", "--ready", "--line", "--blocked"];
const WINDOWS = /** @type {[string, number][]} */ ([["10 ms", 10], ["50 ms", 50], ["200 ms", 200], ["1 s", 1000]]);

/** @param {string} name */
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Strip {
  /** @param {string} id @param {() => boolean} paused @param {() => [number, number]|null} range milliseconds that a recording shows */
  constructor(id, paused, range) {
    this.id = id;
    this.paused = paused;
    this.range = range;
    this.window = 200;
    /** @type {import("./data.js").Strip|null} */ this.data = null;
    /** @type {[number, number]|null} */ this.view = null; // microseconds since from_ms
    this.busy = false;
    this.closed = false;
    this.canvas = el("canvas", { class: "lanes", role: "img", "aria-label": "scheduling of the threads" });
    this.tip = el("div", { class: "tip" });
    this.state = el("span", { class: "count", role: "status" }, "starting…");
    this.summary = el("p", { class: "visually-hidden" });
    this.rivals = el("div", { class: "rivals" });
    this.buttons = el("div", { class: "segmented", role: "group", "aria-label": "Length of the strip" }, ...WINDOWS.map(([label, ms]) => {
      const button = el("button", { type: "button", "data-ms": ms, "aria-pressed": String(ms === this.window) }, label);
      button.addEventListener("click", () => this.setWindow(ms));
      return button;
    }));
    const legend = el("div", { class: "legend" }, ...[0, 1, 3].map((kind) => {
      const box = el("i");
      box.style.background = `var(${STYLES[kind]})`;
      return el("span", {}, box, KINDS[kind]);
    }));
    this.element = el("div", { class: "strip" }, el("div", { class: "bar" }, this.buttons, this.state), el("div", { class: "plot" }, this.canvas, this.tip), legend, this.summary, this.rivals);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => { this.tip.style.display = "none"; });
    this.canvas.addEventListener("mousedown", (event) => this.drag(event));
    this.canvas.addEventListener("dblclick", () => { this.view = null; this.draw(); });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** @param {number} ms */
  setWindow(ms) {
    this.window = ms;
    this.view = null;
    for (const button of this.buttons.children) button.setAttribute("aria-pressed", String(Number(/** @type {HTMLElement} */ (button).dataset.ms) === ms));
    void this.update(true);
  }

  /** @param {boolean} [force] */
  async update(force = false) {
    if (this.busy || this.closed || (!force && (this.paused() || this.view))) return;
    this.busy = true;
    try {
      const range = this.range();
      const middle = range ? (range[0] + range[1]) / 2 : 0;
      const narrow = range && range[1] - range[0] < this.window;
      const query = !range ? `from=-${this.window}` : narrow ? `from=${Math.floor(range[0])}&to=${Math.ceil(range[1])}`
        : `from=${Math.floor(middle - this.window / 2)}&to=${Math.ceil(middle + this.window / 2)}`;
      const data = /** @type {import("./data.js").Strip} */ (await get(`/api/v1/processes/${this.id}/schedule?${query}`));
      if (this.closed) return;
      if (data.threads.length || data.stage === "read" || data.stage === "unavailable" || !this.data) this.data = data;
      this.describe(data);
      this.draw();
      if (data.stage === "reading" || data.stage === "starting") setTimeout(() => void this.update(true), 500);
    } catch (error) {
      this.state.textContent = error instanceof Error ? error.message : String(error);
    } finally { this.busy = false; }
  }

  /** @param {import("./data.js").Strip} data */
  describe(data) {
    const says = /** @type {Record<string, string>} */ ({ starting: "starting…", reading: "reading the recording…", unavailable: data.problem ?? "not available" });
    const waiting = data.stage === "live" && data.threads.length === 0 ? "no switches yet…" : null;
    const notes = [waiting ?? says[data.stage] ?? `${data.threads.length} threads, ${clock(data.from_ms, 3)} to ${clock(data.to_ms, 3)}; drag to zoom`];
    if (data.stage === "read" && data.threads.length === 0) notes.push("no switches of this process here");
    if (data.truncated) notes.push("too much for one picture: zoom in");
    if (data.lost) notes.push(`${data.lost} events lost`);
    this.state.textContent = notes.join(" · ");
    const most = Math.max(1, ...data.preempted_by.map((r) => r.us));
    this.rivals.replaceChildren(...(data.preempted_by.length ? [el("h3", {}, "Took the CPU from it")] : []), ...data.preempted_by.map((rival) => {
      const bar = el("i");
      bar.style.width = `${(rival.us / most) * 100}%`;
      return el("div", { class: "rival" }, el("span", {}, `${rival.name ?? "?"} `, el("small", {}, String(rival.tid))), el("div", { class: "gauge" }, bar), el("span", { class: "num" }, `${rival.count}×`), el("span", { class: "num" }, micros(rival.us)));
    }));
    this.summary.textContent = data.threads.map((t) => `${t.name ?? "thread"} ${t.tid}: ran ${micros(sum(t, 0))}, waited for a CPU ${micros(sum(t, 1))}`).join("; ");
  }

  /** The shown part in microseconds since from_ms. @returns {[number, number]} */
  shown() {
    return this.view ?? [0, Math.max(1, ((this.data?.to_ms ?? 1) - (this.data?.from_ms ?? 0)) * 1000)];
  }

  rows() {
    return (this.data?.threads ?? []).filter((t) => t.intervals.length).sort((a, b) => sum(b, 0) + sum(b, 1) - sum(a, 0) - sum(a, 1)).slice(0, 24);
  }

  draw() {
    const rows = this.rows(), ratio = devicePixelRatio, width = this.canvas.parentElement?.clientWidth ?? 0;
    if (!width) return;
    const height = AXIS + Math.max(1, rows.length) * ROW + 4;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const [from, to] = this.shown(), scale = (width - LABEL - 8) / (to - from);
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.axis(context, width, height, from, to, scale);
    const colors = STYLES.map(color);
    rows.forEach((thread, row) => {
      const y = AXIS + row * ROW;
      context.fillStyle = color("--dim");
      const label = `${thread.name ?? "thread"}`;
      context.fillText(label.slice(0, 16), 0, y + ROW / 2);
      context.fillStyle = color("--faint");
      context.textAlign = "right";
      context.fillText(String(thread.tid), LABEL - 10, y + ROW / 2);
      context.textAlign = "left";
      context.fillStyle = color("--line");
      context.fillRect(LABEL, y + ROW / 2 - 0.5, width - LABEL - 8, 1);
      for (const [kind, start, length] of thread.intervals) {
        if (start + length < from || start > to) continue;
        const x = LABEL + Math.max(0, (start - from) * scale), end = LABEL + Math.min(width - LABEL - 8, (start + length - from) * scale);
        context.fillStyle = colors[kind];
        const tall = kind === 0;
        context.fillRect(x, y + (tall ? 3 : 7), Math.max(end - x, 0.6), ROW - (tall ? 6 : 14));
      }
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {number} from @param {number} to @param {number} scale */
  axis(context, width, height, from, to, scale) {
    const raw = (to - from) / Math.max(2, (width - LABEL) / 110), decade = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * decade).find((s) => s >= raw) ?? raw;
    const [size, unit] = step >= 1000 ? [1000, "ms"] : [1, "µs"], digits = step % size ? 1 : 0;
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const x = LABEL + (t - from) * scale;
      context.fillStyle = color("--line");
      context.fillRect(x, AXIS, 1, height - AXIS);
      context.fillStyle = color("--faint");
      if (x < width - 60) context.fillText(t === 0 ? "0" : `+${(t / size).toFixed(digits)} ${unit}`, x + 3, AXIS / 2);
    }
  }

  /** @param {MouseEvent} event */
  at(event) {
    const box = this.canvas.getBoundingClientRect(), [from, to] = this.shown();
    return { x: event.clientX - box.left, y: event.clientY - box.top, t: from + ((event.clientX - box.left - LABEL) / (box.width - LABEL - 8)) * (to - from) };
  }

  /** @param {MouseEvent} event */
  point(event) {
    const { x, y, t } = this.at(event), thread = this.rows()[Math.floor((y - AXIS) / ROW)], [from, to] = this.shown();
    const slack = (to - from) / 400;
    const hit = thread?.intervals.find(([, start, length]) => t >= start && t <= start + length) ?? thread?.intervals.find(([, start, length]) => t >= start - slack && t <= start + length + slack);
    this.tip.style.display = hit ? "block" : "none";
    if (!hit || !thread) return;
    const [kind, , length, cpu, by] = hit, other = by ? `${this.data?.names[by] ?? "thread"} ${by}` : "";
    this.tip.textContent = `${thread.name ?? "thread"} ${KINDS[kind]} ${micros(length)}${kind === 0 ? ` on CPU ${cpu}${by ? `, then ${other} took it` : ""}` : by ? `, while ${other} had the CPU` : ""}`;
    this.tip.style.left = `${Math.min(x + 12, this.canvas.clientWidth - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${y + 14}px`;
  }

  /** @param {MouseEvent} event */
  drag(event) {
    const begin = this.at(event).t;
    const up = (/** @type {MouseEvent} */ last) => {
      removeEventListener("mouseup", up);
      const end = this.at(last).t, [from, to] = this.shown();
      if (Math.abs(end - begin) < (to - from) / 100) return;
      this.view = [Math.max(from, Math.min(begin, end)), Math.min(to, Math.max(begin, end))];
      this.state.textContent = `${micros(this.view[1] - this.view[0])} of ${micros(((this.data?.to_ms ?? 0) - (this.data?.from_ms ?? 0)) * 1000)}, held; double click for all`;
      this.draw();
    };
    addEventListener("mouseup", up);
  }

  /** What is shown, for a trace. @returns {import("./export.js").Lane[]} */
  lanes() {
    const data = this.data;
    if (!data) return [];
    return data.threads.map((thread) => ({ tid: thread.tid, name: thread.name ?? "thread", slices: thread.intervals.map(([kind, start, length, , by]) => ({
      from_ms: data.from_ms + start / 1000, to_ms: data.from_ms + (start + length) / 1000,
      text: `${KINDS[kind]}${by ? ` (${data.names[by] ?? by})` : ""}` })) }));
  }

  close() {
    this.closed = true;
  }
}

/** Microseconds of one kind. @param {import("./data.js").StripThread} thread @param {number} kind */
function sum(thread, kind) {
  return thread.intervals.reduce((all, i) => all + (i[0] === kind ? i[2] : 0), 0);
}
