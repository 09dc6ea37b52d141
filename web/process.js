// SPDX-License-Identifier: MIT
// One process: CPU by thread, everything else over time, its scheduling, its stacks, its threads, every value.
import { COLORS, Chart } from "./charts.js";
import { get } from "./data.js";
import { storedProcesses } from "./earlier.js";
import { exportBar, saveCsv, savePerfetto, savePng } from "./export.js";
import { Flame } from "./flame.js";
import { bytes, clock, count, day, duration, el, number, perPoint, show, words } from "./format.js";
import { Spans } from "./spans.js";
import { Strip } from "./strip.js";
import { $, PANELS, absoluteRange, button, exactness, range, resetZoom, scaled, setPaused, shell, store, times, view, writeAddress, zoom } from "./view.js";

/** Figures at the top, in this order. */
const FIGURES = ["cpu_percent", "runq_wait_ns", "rss_bytes", "threads", "gpu_percent", "energy_uj", "disk_read_bytes", "disk_write_bytes"];

/** Resolutions of the history on disk, which has no threads. */
const ON_DISK = new Set(["10s", "5m"]);

/** The choice of what to compare with. @param {string} id @param {string} name */
function compareDialog(id, name) {
  const list = el("div", { class: "choices", role: "listbox", "aria-label": "Processes" });
  const search = el("input", { type: "search", placeholder: "Search a process", "aria-label": "Search a process to compare with" });
  const before = button("The same process, the time before", "The range that ends where this one begins", () => {
    const [from, to] = absoluteRange(), begin = Math.max(from, store.meta.first_ms ?? 0, store.processes.get(id)?.start_ms ?? 0), middle = (begin + to) / 2;
    // Without a time before that is known, the halves of this one.
    const known = begin === from && from - (to - from) > (store.meta.first_ms ?? 0);
    go(known ? { b: id, bFrom: from - (to - from), bTo: from, from, to } : { b: id, bFrom: begin, bTo: middle, from: middle, to });
  });
  const dialog = el("dialog", { "aria-label": "Compare with", class: "compare" }, el("h2", {}, `Compare ${name} with`), before, search, list, el("form", { method: "dialog" }, el("button", {}, "Close")));
  /** @type {import("./earlier.js").Stored[]} */ let earlier = [];
  if (store.meta.store) void storedProcesses(store.now - 2592e6, store.now).then((found) => { earlier = found; fill(); }, () => {});
  /** @param {{b: string, bFrom?: number, bTo?: number, from?: number, to?: number}} other */
  const go = (other) => {
    dialog.close();
    Object.assign(view, { id: "", a: id, bFrom: 0, bTo: 0 }, other);
    writeAddress(false);
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  const fill = () => {
    const wanted = search.value.toLowerCase();
    const found = [...store.processes.values()].filter((p) => p.id !== id && `${p.name ?? ""} ${p.pid}`.toLowerCase().includes(wanted))
      .sort((x, y) => (store.value(y, "cpu_percent") ?? 0) - (store.value(x, "cpu_percent") ?? 0)).slice(0, 12);
    const past = earlier.filter((p) => p.id !== id && !store.processes.has(p.id) && `${p.name ?? ""} ${p.pid}`.toLowerCase().includes(wanted)).slice(0, 12);
    list.replaceChildren(...found.map((p) => {
      const choice = el("button", { type: "button", role: "option", "data-id": p.id }, el("span", {}, p.name ?? "?"), el("small", {}, String(p.pid)));
      choice.addEventListener("click", () => go({ b: p.id }));
      return choice;
    }), ...past.map((p) => {
      const choice = el("button", { type: "button", role: "option", "data-id": p.id }, el("span", {}, p.name ?? "?"), el("small", {}, `${p.pid} · ${day(p.start_ms)}`));
      // Its life over the beginning of this one.
      const [from, to] = absoluteRange(), begin = Math.floor(p.start_ms), end = Math.min(Math.ceil(p.exit_ms ?? p.last_ms), begin + (to - from));
      choice.addEventListener("click", () => go({ b: p.id, bFrom: begin, bTo: Math.max(end, begin + 600e3), from, to }));
      return choice;
    }));
  };
  search.addEventListener("input", fill);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  fill();
  dialog.showModal();
}

export function processPage() {
  const main = $("main"), id = view.id, recorded = Boolean(store.meta.recorded);
  const name = el("h1", {}, "…"), sub = el("span", { class: "sub" }), state = el("span", { class: "badge", hidden: true });
  const figures = el("dl", { class: "figures" }), facts = el("dl", { class: "facts" }), cmdline = el("div", { class: "cmdline", hidden: true });
  const threadRows = el("tbody");
  const options = { onZoom: zoom, onReset: resetZoom };
  const cpuCard = el("section", { class: "card wide" });
  const cpu = new Chart(cpuCard, { title: "CPU by thread", format: (v) => `${number(v, 0)} %`, stacked: true, height: 230, ...exactness("cpu_ns"), ...options });
  const resolution = el("span", { class: "count", role: "status" });
  const reset = button("Reset zoom", "The span of the head again (Esc)", resetZoom);
  const charts = PANELS.map((panel) => ({ panel, names: panel.names.filter((n) => store.metrics.has(n)) })).filter((p) => p.names.length).map((p) => {
    const metric = /** @type {import("./data.js").Metric} */ (store.metrics.get(p.names[0]));
    const format = (/** @type {number|null|undefined} */ v) => (p.panel.percent ? `${number(v, 0)} %` : metric.unit === "uj" ? `${number(v, 1)} W` : show(metric, v));
    const card = el("section", { class: "card" });
    return { ...p, chart: new Chart(card, { title: p.panel.title, format, bytes: metric.unit === "bytes", ...exactness(p.names[0]), ...options }) };
  });
  /** @type {unknown[][]} */ let rows = [];
  /** @type {import("./export.js").Counter[]} */ let counters = [];
  let owner = { pid: Number(id.split("-")[0]), name: "process" };
  /** @type {Strip|null} */ let strip = null;
  /** @type {Flame|null} */ let flame = null;
  const stripCard = el("section", { class: "card wide", hidden: !store.meta.details }), flameCard = el("section", { class: "card wide", hidden: !recorded || !store.meta.details });
  const watchesSpans = Boolean(store.meta.inferences || store.meta.marks);
  const spans = watchesSpans ? new Spans(id, range, options) : null;
  const spansCard = el("section", { class: "card wide", hidden: !spans }, el("h2", {}, store.meta.marks ? "Inferences and marked work" : "Inferences", el("span", { class: "exact exact-yes", title: "every switch, wake-up and page fault of the kernel" }, "exact")), spans?.element ?? null);
  const openDetails = button("Show the scheduling of its threads", recorded ? "Reads this part of the recording again" : "Reads the scheduler while this page is open; costs nothing otherwise", () => { view.details = true; writeAddress(); showDetails(); });
  const showDetails = () => {
    strip = new Strip(id, () => store.paused && !recorded, () => (recorded || view.from ? absoluteRange() : null));
    stripCard.replaceChildren(el("h2", {}, "Scheduling", el("span", { class: "exact exact-yes", title: "every switch and wake-up of the kernel" }, "exact")), strip.element);
    void strip.update();
    if (!recorded) return;
    flame = new Flame(id, absoluteRange);
    flameCard.replaceChildren(el("h2", {}, "Stacks", el("span", { class: "exact estimated", title: "profile samples" }, "samples")), flame.element);
    void flame.update();
  };
  stripCard.append(el("h2", {}, "Scheduling"), el("div", { class: "bar" }, openDetails));
  flameCard.hidden = flameCard.hidden || !view.details;
  const heads = [["Thread", ""], ["TID", "num"], ["CPU time", "num"], ["Waited for a CPU", "num"]].map(([text, kind]) => el("th", { scope: "col", class: kind }, text));
  const totals = el("section", { class: "card" }, el("h2", {}, "Threads, in total"), el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Threads" }, el("table", { class: "threads" }, el("thead", {}, el("tr", {}, ...heads)), threadRows)));
  const everything = el("section", { class: "card wide" }, el("h2", {}, "Every value, now and in total"), facts);
  main.replaceChildren(el("div", { class: "title" }, button("←", "All processes (Esc)", () => { location.hash = "#/"; }), name, state, sub), cmdline, figures,
    el("div", { class: "bar" }, resolution, reset, button("Compare…", "With another process, or with another time", () => compareDialog(id, owner.name)),
      exportBar([["CSV", "The values of the charts", () => saveCsv(`process-${owner.pid}`, rows)], ["PNG", "The charts", () => savePng(`process-${owner.pid}`, `${owner.name} ${owner.pid}`)],
        ["Perfetto", "Charts and scheduling as a trace for the Perfetto UI", () => savePerfetto(`process-${owner.pid}`, owner, counters, strip?.lanes() ?? [])]])),
    el("div", { class: "charts" }, cpuCard, spansCard, stripCard, flameCard, ...charts.map((c) => c.chart.card),
      totals, everything));
  if (view.details) { flameCard.hidden = !recorded; showDetails(); }
  /** The answer has the busiest threads first; a thread keeps its place and colour. @type {Map<number, number>} */
  const places = new Map();
  let busy = false, gone = false, detailSeen = false;
  const update = async () => {
    if (gone) return;
    void strip?.update();
    void flame?.update();
    void spans?.update();
    if (busy) return;
    busy = true;
    const base = `/api/v1/processes/${id}`;
    try {
      const [detail, history, threads] = await Promise.all([get(base), get(`${base}/history?${range()}`), get(`${base}/threads?${range()}`)]);
      if (shell.page === own && !showLife(detail)) draw(detail, history, threads);
    } catch (error) {
      gone = /** @type {{status?: number}} */ (error).status === 404 && !detailSeen;
      if (gone) name.textContent = store.alerts.find((a) => a.id === id)?.name ?? `Process ${id.split("-")[0]}`;
      if (shell.page === own) sub.textContent = error instanceof Error ? error.message : String(error);
    } finally { busy = false; }
  };
  /** A process of the past is shown over its life; true: it is being read. @param {any} detail */
  const showLife = (detail) => {
    if (!detail.stored || view.from) return false;
    view.from = Math.floor(detail.first_ms - 300e3);
    view.to = Math.ceil((detail.exit_ms ?? detail.last_ms) + 300e3);
    setPaused(true);
    writeAddress();
    shell.header();
    setTimeout(() => void update(), 0);
    return true;
  };
  /** @param {any} detail */
  const drawHead = (detail) => {
    detailSeen = true;
    owner = { pid: detail.pid, name: detail.name ?? "process" };
    name.textContent = detail.name ?? "?";
    document.title = `${detail.name ?? "?"} · etwatch`;
    const how = detail.exit_signal ? ` by signal ${detail.exit_signal}` : detail.exit_code === undefined ? "" : ` with ${detail.exit_code}`;
    const ended = detail.exit_ms ? `exited ${detail.stored ? day(detail.exit_ms) : clock(detail.exit_ms)}${how}` : detail.stored ? `last seen ${day(detail.last_ms)}` : "";
    // Of the past only the charts are known.
    for (const part of [figures, stripCard, spansCard, totals, everything]) if (detail.stored) part.hidden = true;
    sub.textContent = [`PID ${detail.pid}`, detail.user, detail.cgroup, detail.start_ms ? `started ${new Date(detail.start_ms).toLocaleString("en-GB")}` : null].filter(Boolean).join(" · ");
    state.hidden = !ended;
    state.textContent = ended;
    state.className = `badge ${detail.exit_code || detail.exit_signal ? "bad" : ""}`;
    cmdline.hidden = !detail.cmdline;
    cmdline.textContent = detail.cmdline ?? "";
    figures.replaceChildren(...FIGURES.filter((n) => store.metrics.has(n) && detail.values[n] !== undefined).map((n) => {
      const metric = /** @type {import("./data.js").Metric} */ (store.metrics.get(n));
      return el("div", {}, el("dt", {}, n === "energy_uj" ? "Power" : words(n)), el("dd", {}, show(metric, detail.values[n])));
    }));
    threadRows.replaceChildren(...[...detail.threads].sort((a, b) => b.cpu_ns - a.cpu_ns).slice(0, 64).map((t) => el("tr", {}, el("td", {}, t.name || "–"), el("td", { class: "num" }, String(t.tid)), el("td", { class: "num" }, duration(t.cpu_ns)), el("td", { class: "num" }, duration(t.runq_wait_ns)))));
    facts.replaceChildren(...Object.entries(detail.values).filter(([n]) => store.metrics.has(n) && !n.startsWith("exit_")).map(([n, v]) => {
      const metric = /** @type {import("./data.js").Metric} */ (store.metrics.get(n)), sum = detail.totals[n];
      const whole = sum === undefined ? null : el("small", {}, ` ${metric.unit === "ns" ? duration(sum) : metric.unit === "bytes" ? bytes(sum) : metric.unit === "uj" ? `${number(sum / 1e6, 1)} J` : count(sum)} in total`);
      return el("div", { title: `${metric.help} (${metric.exactness})` }, el("dt", {}, `${metric.exactness === "estimated" ? "≈ " : metric.exactness === "polled" ? "⟳ " : ""}${words(n)}`), el("dd", {}, show(metric, /** @type {number|null} */ (v)), whole));
    }));
  };
  /** @param {any} detail @param {import("./data.js").History} h @param {import("./data.js").Threads} t */
  const draw = (detail, h, t) => {
    drawHead(detail);
    reset.hidden = !view.from;
    resolution.textContent = `${perPoint(h.step_ms)}${h.resolution === "sample" ? ", every sample" : ON_DISK.has(h.resolution) ? ", from disk" : ""} · drag in a chart to zoom`;
    const marks = [{ t: detail.start_ms, text: "start", color: "#34d399" }, ...(detail.exit_ms ? [{ t: detail.exit_ms, text: "exit", color: "#f87171" }] : []),
      ...store.alerts.filter((a) => a.id === id).map((a) => ({ t: a.from_ms, text: a.metric, color: "#fbbf24" }))];
    const at = times(h), total = h.series.cpu_ns ?? [];
    for (const { tid } of t.threads) if (!places.has(tid)) places.set(tid, places.size);
    const place = (/** @type {{tid: number}} */ thread) => places.get(thread.tid) ?? 0;
    const bands = (ON_DISK.has(h.resolution) ? [] : [...t.threads].sort((x, y) => place(x) - place(y))).map((thread) => ({ label: `${thread.name || "thread"} ${thread.tid}`, color: COLORS[place(thread) % COLORS.length], values: thread.cpu_ns.map((v) => (v === null ? null : v / 1e7)) }));
    const rest = total.map((v, i) => (v === null ? null : Math.max(0, v / 1e7 - bands.reduce((sum, b) => sum + (b.values[i] ?? 0), 0))));
    if (!bands.length || rest.some((v) => (v ?? 0) > 1)) bands.push({ label: bands.length ? "other threads" : "CPU", color: bands.length ? "#64748b" : COLORS[0], values: rest });
    cpu.set(at, bands, marks);
    for (const { names, chart } of charts)
      chart.set(at, names.map((n, i) => ({ label: words(n), color: COLORS[i + 1], values: (h.series[n] ?? at.map(() => null)).map((v) => scaled(n, v)) })), marks);
    rows = [["t_ms", ...Object.keys(h.series)], ...at.map((ms, i) => [ms, ...Object.values(h.series).map((s) => s[i])])];
    counters = [...charts.flatMap(({ names }) => names), "cpu_ns"].filter((n) => h.series[n]).map((n) => ({
      name: n === "cpu_ns" ? "cpu_percent" : n, unit: n.endsWith("_ns") ? "%" : n === "energy_uj" ? "W" : n.endsWith("_bytes") ? "By" : "", times: at, values: h.series[n].map((v) => scaled(n, v)) }));
  };
  const own = { update: () => void update(), leave: () => { [cpu, ...charts.map((c) => c.chart)].forEach((c) => c.destroy()); strip?.close(); flame?.close(); spans?.close(); } };
  shell.page = own;
  void update();
}
