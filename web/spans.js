// SPDX-License-Identifier: MIT
// Inferences and other marked work: how long they took, and why. Latency over time by cause, statistics by name, and the
// slowest ones with the threads and processes that they waited for.
import { Chart } from "./charts.js";
import { get } from "./data.js";
import { clock, duration, el } from "./format.js";

/**
 * @typedef {{kind: number, pid: number, tid: number, ns: number, name: string|null}} Cause
 * @typedef {{kind: string, name: string, session: string|null, pid: number}} Names
 * @typedef {Names & {count: number, failed: number, incomplete: number, p50_ns: number, p95_ns: number, p99_ns: number, max_ns: number,
 *   mean_ns: number, total_ns: (number|null)[], text: string|null}} Group
 * @typedef {Names & {tid: number, shape: string|null, start_ms: number, latency_ns: number, ns: (number|null)[], causes: Cause[],
 *   cpu_ns: number, helpers: number, preempted: number, failed: boolean, complete: boolean}} Span
 * @typedef {{kept: number, known_from_ms: number|null, from_ms: number, to_ms: number, count: number, others: number, causes: string[],
 *   groups: Group[], slowest: Span[], timeline: {from_ms: number, step_ms: number, counts: number[], p50_ns: (number|null)[],
 *   max_ns: (number|null)[], mean_ns: (number|null)[][]}}} Answer
 */

/** In the order of the API. */
const WORDS = ["work", "waiting for a CPU", "throttled by its cgroup", "page faults", "waiting for a disk", "waiting for another thread",
  "waiting for another process", "asleep (timer or network)", "unknown"];
export const CAUSE_COLORS = ["#2dd4bf", "#fbbf24", "#f87171", "#a78bfa", "#f472b6", "#60a5fa", "#818cf8", "#94a3b8", "#64748b"];

/** @param {Names} s */
export const title = (s) => (s.session ? `${s.name} of ${s.session}` : s.name);

/** A bar with one part per cause, and the same in words. @param {(number|null)[]} ns @param {number} whole */
export function causeBar(ns, whole) {
  const parts = ns.map((v, i) => ({ i, v: v ?? 0 })).filter((p) => p.v > 0);
  const text = [...parts].sort((a, b) => b.v - a.v).map((p) => `${duration(p.v)} ${WORDS[p.i]}`).join(", ");
  const bar = el("div", { class: "causes", role: "img", "aria-label": text, title: text });
  for (const { i, v } of parts) {
    const part = el("i");
    part.style.width = `${(100 * v) / Math.max(1, whole)}%`;
    part.style.background = CAUSE_COLORS[i];
    bar.append(part);
  }
  return bar;
}

/** What it waited for, the largest first. @param {Span} span */
function reasons(span) {
  const rest = span.ns.map((v, i) => ({ i, v: v ?? 0 })).filter((p) => p.i > 0 && p.v * 100 >= span.latency_ns).sort((a, b) => b.v - a.v).slice(0, 3);
  if (!rest.length) return span.complete ? "all of it work" : "events are missing";
  return rest.map(({ i, v }) => {
    const names = span.causes.filter((c) => c.kind === i && c.ns * 20 >= v).slice(0, 2).map((c) => (i === 1 && c.pid === 0 ? "the CPU was idle" : `${c.name ?? "unknown"} ${c.tid || c.pid}`));
    return `${duration(v)} ${WORDS[i]}${names.length ? ` (${names.join(", ")})` : ""}`;
  }).join(", ");
}

export class Spans {
  /** @param {string} id @param {() => string} query range as the API takes it @param {{onZoom: (from: number, to: number) => void, onReset: () => void}} zoom */
  constructor(id, query, zoom) {
    this.id = id;
    this.query = query;
    this.busy = false;
    this.closed = false;
    this.state = el("span", { class: "count", role: "status" }, "");
    const latency = el("div"), causes = el("div");
    this.latency = new Chart(latency, { title: "Latency: median and slowest", format: (v) => duration(v), height: 150, ...zoom });
    this.causes = new Chart(causes, { title: "Mean latency by cause", format: (v) => duration(v), stacked: true, height: 150, ...zoom });
    this.groups = el("tbody");
    this.slowest = el("ol", { class: "slowest" });
    this.charts = el("div", { class: "pair" }, latency, causes);
    const head = ["Name", "Count", "p50", "p95", "p99", "Slowest", "Where the time went"];
    this.table = el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Statistics by name" }, el("table", { class: "threads" },
      el("thead", {}, el("tr", {}, ...head.map((h, i) => el("th", { scope: "col", class: i > 0 && i < 6 ? "num" : "" }, h)))), this.groups));
    this.element = el("div", { class: "spans" }, el("div", { class: "bar" }, this.state), this.charts, this.table, el("h3", {}, "The slowest"), this.slowest);
  }

  async update() {
    if (this.busy || this.closed) return;
    this.busy = true;
    try {
      const got = /** @type {Answer} */ (await get(`/api/v1/processes/${this.id}/spans?${this.query()}`));
      if (!this.closed) this.draw(got);
    } catch (error) {
      this.state.textContent = error instanceof Error ? error.message : String(error);
    } finally { this.busy = false; }
  }

  /** @param {Answer} a */
  draw(a) {
    const incomplete = a.groups.reduce((sum, g) => sum + g.incomplete, 0), failed = a.groups.reduce((sum, g) => sum + g.failed, 0);
    this.state.textContent = a.count === 0 ? "none in this range" : [`${a.count.toLocaleString("en")} in this range`, failed ? `${failed} failed` : null,
      incomplete ? `events are missing for ${incomplete}` : null, a.known_from_ms && a.known_from_ms > a.from_ms ? `known since ${clock(a.known_from_ms)}` : null].filter(Boolean).join(" · ");
    for (const part of [this.charts, this.table, this.slowest, /** @type {HTMLElement} */ (this.slowest.previousElementSibling)]) part.hidden = a.count === 0;
    if (a.count === 0) return;
    const t = a.timeline, at = t.counts.map((_, i) => t.from_ms + (i + 0.5) * t.step_ms);
    // A rare span would be one point between gaps, which no line shows: it is held over short gaps.
    const held = (/** @type {(number|null)[]} */ values) => {
      let last = /** @type {number|null} */ (null), gap = 0;
      return values.map((v) => { gap = v === null ? gap + 1 : 0; last = v ?? (gap < 6 ? last : null); return last; });
    };
    this.latency.set(at, [{ label: "median", color: CAUSE_COLORS[0], values: held(t.p50_ns) }, { label: "slowest", color: CAUSE_COLORS[1], values: held(t.max_ns) }]);
    const used = WORDS.map((_, i) => i).filter((i) => t.mean_ns[i].some((v) => v));
    this.causes.set(at, used.map((i) => ({ label: WORDS[i], color: CAUSE_COLORS[i], values: held(t.mean_ns[i]) })));
    this.groups.replaceChildren(...a.groups.map((g) => el("tr", { title: g.text ?? "" }, el("td", {}, title(g), el("small", {}, ` ${g.kind}`)), el("td", { class: "num" }, g.count.toLocaleString("en")),
      ...[g.p50_ns, g.p95_ns, g.p99_ns, g.max_ns].map((v) => el("td", { class: "num" }, duration(v))), el("td", { class: "where" }, causeBar(g.total_ns, g.mean_ns * g.count), el("small", {}, g.text ?? "")))));
    const longest = Math.max(1, ...a.slowest.map((s) => s.latency_ns));
    this.slowest.replaceChildren(...a.slowest.slice(0, 8).map((s) => {
      const bar = causeBar(s.ns, s.latency_ns);
      bar.style.width = `${Math.max(2, (100 * s.latency_ns) / longest)}%`;
      return el("li", { class: s.failed ? "failed" : "" }, el("span", { class: "what" }, el("b", {}, duration(s.latency_ns)), ` ${title(s)}`, el("small", {}, ` ${clock(s.start_ms, 3)} · thread ${s.tid}${s.shape ? ` · ${s.shape}` : ""}${s.failed ? " · failed" : ""}`)), bar, el("span", { class: "why" }, reasons(s)));
    }));
  }

  close() {
    this.closed = true;
    this.latency.destroy();
    this.causes.destroy();
  }
}
