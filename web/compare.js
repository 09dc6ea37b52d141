// SPDX-License-Identifier: MIT
// Two processes, or two times of one process, over each other: the time counts from the begin of each range.
import { COLORS, Chart } from "./charts.js";
import { get } from "./data.js";
import { exportBar, saveCsv, savePng } from "./export.js";
import { bytes, clock, count, duration, el, number, show, words } from "./format.js";
import { $, PANELS, absoluteRange, button, exactness, resetZoom, scaled, shell, store, view, zoom } from "./view.js";

const ALL = [{ title: "CPU", names: ["cpu_ns"], percent: true }, ...PANELS];

/** The total of a rate over a range. @param {import("./data.js").History} h @param {string} name */
function total(h, name) {
  const values = (h.series[name] ?? []).filter((v) => v !== null);
  return values.length ? values.reduce((/** @type {number} */ sum, v) => sum + (v ?? 0), 0) * (h.step_ms / 1000) : null;
}

/** @param {import("./data.js").History} h @param {string} name */
function mean(h, name) {
  const values = /** @type {number[]} */ ((h.series[name] ?? []).filter((v) => v !== null));
  return values.length ? values.reduce((sum, v) => sum + v, 0) / values.length : null;
}

/** @param {import("./data.js").Metric} metric @param {number|null} value */
function amount(metric, value) {
  if (value === null) return "–";
  if (metric.kind !== "counter") return show(metric, value);
  return metric.unit === "ns" ? duration(value) : metric.unit === "bytes" ? bytes(value) : metric.unit === "uj" ? `${number(value / 1e6, 1)} J` : count(value);
}

export function comparePage() {
  const main = $("main"), { a, b } = view, same = a === b;
  /** Names of processes that only the disk knows. @type {Map<string, string>} */ const stored = new Map();
  const label = (/** @type {string} */ id) => `${stored.get(id) ?? store.processes.get(id)?.name ?? "process"} ${id.split("-")[0]}`;
  const names = [`A: ${label(a)}`, `B: ${label(b)}`];
  const body = el("tbody"), resolution = el("span", { class: "count", role: "status" });
  const charts = ALL.map((panel) => ({ panel, name: panel.names.find((n) => store.metrics.has(n)) ?? "" })).filter((p) => p.name).map((p) => {
    const metric = /** @type {import("./data.js").Metric} */ (store.metrics.get(p.name));
    const format = (/** @type {number|null|undefined} */ v) => (p.panel.percent ? `${number(v, 0)} %` : metric.unit === "uj" ? `${number(v, 1)} W` : show(metric, v));
    const onZoom = (/** @type {number} */ from, /** @type {number} */ to) => { const [begin] = ranges()[0]; const shift = view.bFrom ? view.bFrom - begin : 0; if (view.bFrom) { view.bFrom = begin + from + shift; view.bTo = begin + to + shift; } zoom(begin + from, begin + to); };
    return { ...p, metric, chart: new Chart(el("section", { class: "card" }), { title: p.panel.title, format, bytes: metric.unit === "bytes", relative: true, ...exactness(p.name), onZoom, onReset: resetZoom }) };
  });
  /** @returns {[number, number][]} */
  const ranges = () => { const own = absoluteRange(); return [own, view.bFrom ? [view.bFrom, view.bTo] : own]; };
  /** @type {unknown[][]} */ let rows = [];
  const swap = button("Swap", "B becomes A", () => {
    const [[from, to], [bFrom, bTo]] = ranges();
    Object.assign(view, { a: b, b: a }, view.bFrom ? { from: bFrom, to: bTo, bFrom: from, bTo: to } : {});
    route();
  });
  const route = () => { history.pushState(null, "", `#/compare?a=${view.a}&b=${view.b}${view.bFrom ? `&from=${Math.round(view.from)}&to=${Math.round(view.to)}&bfrom=${Math.round(view.bFrom)}&bto=${Math.round(view.bTo)}` : ""}`); dispatchEvent(new HashChangeEvent("hashchange")); };
  main.replaceChildren(el("div", { class: "title" }, button("←", `Back to ${label(a)}`, () => { location.hash = `#/process/${a}`; }), el("h1", {}, "Compare"), el("span", { class: "sub" }, ...names.map((text, i) => {
    const box = el("i", { class: `swatch ${i ? "b" : "a"}` });
    return el("span", { class: "named" }, box, text);
  }))), el("div", { class: "bar" }, resolution, swap, exportBar([["CSV", "The table", () => saveCsv("compare", rows)], ["PNG", "The charts", () => savePng("compare", names.join(", "))]])),
  el("section", { class: "card" }, el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Totals" }, el("table", { class: "threads totals" }, el("thead", {}, el("tr", {}, ...["Over the range", "A", "B", "B to A"].map((h, i) => el("th", { scope: "col", class: i ? "num" : "" }, h)))), body))),
  el("div", { class: "charts" }, ...charts.map((c) => c.chart.card)));
  [a, b].forEach((id, i) => {
    if (store.processes.has(id)) return;
    void get(`/api/v1/processes/${id}`).then((found) => {
      stored.set(id, found.name ?? "process");
      names[i] = `${"AB"[i]}: ${label(id)}`;
      const shown = main.querySelectorAll(".title .named")[i]?.lastChild;
      if (shown && shell.page === own) shown.textContent = names[i];
    }, () => {});
  });
  let busy = false;
  const update = async () => {
    if (busy) return;
    busy = true;
    try {
      const found = /** @type {import("./data.js").History[]} */ (await Promise.all([a, b].map((id, i) => get(`/api/v1/processes/${id}/history?from=${Math.floor(ranges()[i][0])}&to=${Math.ceil(ranges()[i][1])}`))));
      if (shell.page === own) draw(found);
    } catch (error) {
      if (shell.page === own) resolution.textContent = error instanceof Error ? error.message : String(error);
    } finally { busy = false; }
  };
  /** @param {import("./data.js").History[]} both */
  const draw = (both) => {
    const step = Math.max(both[0].step_ms, both[1].step_ms), length = Math.max(both[0].count * both[0].step_ms, both[1].count * both[1].step_ms);
    const at = Array.from({ length: Math.ceil(length / step) }, (_, i) => (i + 1) * step);
    const [[from, to], [bFrom, bTo]] = ranges();
    resolution.textContent = same ? `A ${clock(from)} to ${clock(to)}, B ${clock(bFrom)} to ${clock(bTo)}` : `${clock(from)} to ${clock(to)}, ${step >= 1000 ? `${step / 1000} s` : `${step} ms`} per point`;
    for (const { name, chart } of charts)
      chart.set(at, both.map((h, i) => ({ label: i ? "B" : "A", color: i ? COLORS[3] : COLORS[0], dash: i ? [6, 3] : undefined,
        values: at.map((ms) => scaled(name, h.series[name]?.[Math.round(ms / h.step_ms) - 1] ?? null)) })));
    const metrics = [...store.metrics.values()].filter((m) => both.some((h) => h.series[m.name]?.some((v) => v !== null)) && m.unit !== "mask" && m.name !== "priority");
    rows = [["metric", names[0], names[1], "ratio"]];
    body.replaceChildren(...metrics.map((m) => {
      const [x, y] = both.map((h) => (m.kind === "counter" ? total(h, m.name) : mean(h, m.name)));
      const ratio = x && y !== null ? y / x : null;
      rows.push([m.name, x, y, ratio]);
      const far = ratio !== null && (ratio > 1.25 || ratio < 0.8);
      return el("tr", { title: `${m.help} (${m.exactness})` }, el("td", {}, words(m.name), el("small", {}, m.kind === "counter" ? " in total" : " on average")), el("td", { class: "num" }, amount(m, x)), el("td", { class: "num" }, amount(m, y)),
        el("td", { class: `num ${far ? (Number(ratio) > 1 ? "more" : "less") : ""}` }, ratio === null ? "–" : `×${ratio.toFixed(2)}`));
    }));
  };
  const own = { update: () => void update(), leave: () => charts.forEach((c) => c.chart.destroy()) };
  shell.page = own;
  void update();
}
