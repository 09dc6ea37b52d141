// SPDX-License-Identifier: MIT
// What is shown: the store, the view that the address holds, and what every page needs. A page registers itself.
import { Store } from "./data.js";
import { el } from "./format.js";

/** @typedef {{update: () => void, leave: () => void}} Page */

/** @param {string} id */
export const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
export const SPANS = /** @type {[string, number][]} */ ([["10 s", 10e3], ["1 min", 60e3], ["5 min", 300e3], ["15 min", 900e3], ["1 h", 3600e3]]);
/** What a history on disk has in addition. */
export const LONG_SPANS = /** @type {[string, number][]} */ ([["6 h", 216e5], ["1 d", 864e5], ["7 d", 6048e5], ["30 d", 2592e6]]);
export const store = new Store();
export const view = { span: 60e3, from: 0, to: 0, sort: "cpu_percent", up: false, tree: false, query: "", id: "", a: "", b: "", bFrom: 0, bTo: 0, details: false, earlier: false };
/** @type {{page: Page|null, header: () => void}} */
export const shell = { page: null, header: () => {} };

const ID = /^\d+-\d+$/;

export function readAddress() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  const given = new URLSearchParams(query);
  const id = (/** @type {string} */ key) => (ID.test(given.get(key) ?? "") ? given.get(key) ?? "" : "");
  view.id = /^\/process\/(\d+-\d+)$/.exec(path)?.[1] ?? "";
  view.a = path === "/compare" ? id("a") : "";
  view.b = path === "/compare" ? id("b") : "";
  view.span = Number(given.get("span")) || 60e3;
  view.from = Number(given.get("from")) || 0;
  view.to = Number(given.get("to")) || 0;
  view.bFrom = Number(given.get("bfrom")) || 0;
  view.bTo = Number(given.get("bto")) || 0;
  view.sort = given.get("sort") ?? "cpu_percent";
  view.up = given.get("up") === "1";
  view.tree = given.get("tree") === "1";
  view.query = given.get("q") ?? "";
  view.details = given.get("details") === "1";
  view.earlier = given.get("earlier") === "1";
}

/** The address of the view, with the time range fixed if it is to be shared. @param {boolean} [fixed] */
export function address(fixed = false) {
  const given = new URLSearchParams();
  if (view.a) { given.set("a", view.a); given.set("b", view.b); }
  if (view.span !== 60e3) given.set("span", String(view.span));
  const [from, to] = fixed && !view.from ? absoluteRange() : [view.from, view.to];
  if (from) { given.set("from", String(Math.round(from))); given.set("to", String(Math.round(to))); }
  if (view.bFrom) { given.set("bfrom", String(Math.round(view.bFrom))); given.set("bto", String(Math.round(view.bTo))); }
  if (view.sort !== "cpu_percent") given.set("sort", view.sort);
  if (view.up) given.set("up", "1");
  if (view.tree) given.set("tree", "1");
  if (view.query) given.set("q", view.query);
  if (view.details) given.set("details", "1");
  if (view.earlier && !view.id && !view.a) given.set("earlier", "1");
  return `#/${view.id ? `process/${view.id}` : view.a ? "compare" : ""}${String(given) ? `?${given}` : ""}`;
}

/** @param {boolean} [stay] do not add to the history of the browser */
export function writeAddress(stay = true) {
  if (stay) history.replaceState(null, "", address()); else history.pushState(null, "", address());
}

/** Milliseconds of Unix time. @returns {[number, number]} */
export function absoluteRange() {
  if (view.from) return [view.from, view.to];
  if (store.meta?.recorded && view.span === 60e3) return [Math.floor(store.meta.first_ms), Math.ceil(store.meta.now_ms)];
  return [store.now - view.span, store.now];
}

/** The range as the API takes it. */
export function range() {
  if (view.from) return `from=${Math.round(view.from)}&to=${Math.round(view.to)}`;
  return store.meta?.recorded && view.span === 60e3 ? `from=${Math.floor(store.meta.first_ms)}` : `from=-${view.span}`;
}

/** @param {number} from @param {number} to */
export function zoom(from, to) {
  view.from = from;
  view.to = Math.max(to, from + 1);
  setPaused(true);
  writeAddress(false);
  shell.header();
  shell.page?.update();
}

export function resetZoom() {
  if (!view.from) return;
  view.from = view.to = 0;
  setPaused(false);
  writeAddress(false);
  shell.header();
  shell.page?.update();
}

/** @param {boolean} paused */
export function setPaused(paused) {
  store.paused = paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  $("pause").textContent = paused ? "Resume" : "Pause";
}

const MARKS = /** @type {Record<string, string>} */ ({ exact: "exact-yes", estimated: "estimated", polled: "polled" });

/** @param {string} name @returns {{note?: string, noteClass?: string, noteTitle?: string}} */
export function exactness(name) {
  const metric = store.metrics.get(name);
  if (!metric?.exactness) return {};
  return { note: metric.exactness, noteClass: MARKS[metric.exactness] ?? "", noteTitle: metric.help };
}

/** @param {import("./data.js").Range} h */
export const times = (h) => Array.from({ length: h.count }, (_, i) => h.from_ms + (i + 1) * h.step_ms);

/** @param {string} label @param {string} title @param {() => void} action */
export function button(label, title, action) {
  const made = el("button", { type: "button", title }, label);
  made.addEventListener("click", action);
  return made;
}

/** Panels of a process: metrics that belong together. */
export const PANELS = /** @type {{title: string, names: string[], percent?: boolean, hint?: string}[]} */ ([
  { title: "Waiting for a CPU", names: ["runq_wait_ns"], percent: true },
  { title: "Memory", names: ["rss_bytes", "private_bytes"] },
  { title: "Disk", names: ["disk_read_bytes", "disk_write_bytes"] },
  { title: "Read and written by calls", names: ["io_read_bytes", "io_write_bytes"] },
  { title: "Network", names: ["net_received_bytes", "net_sent_bytes"] },
  { title: "Context switches", names: ["switches_voluntary", "switches_involuntary"] },
  { title: "Page faults", names: ["faults_minor", "faults_major"] },
  { title: "Threads", names: ["threads"] },
  { title: "GPU and NPU time", names: ["gpu_ns", "npu_ns"], percent: true },
  { title: "GPU memory", names: ["gpu_memory_bytes"] },
  { title: "Power", names: ["energy_uj"] },
]);

/** Nanoseconds a second are a percentage, microjoules a second are microwatts. @param {string} name @param {number|null} value */
export function scaled(name, value) {
  if (value === null) return null;
  return name.endsWith("_ns") ? value / 1e7 : name === "energy_uj" ? value / 1e6 : value;
}
