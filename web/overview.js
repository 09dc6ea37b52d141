// SPDX-License-Identifier: MIT
// The machine at a glance and the table of processes.
import { COLORS, spark } from "./charts.js";
import { get } from "./data.js";
import { Earlier } from "./earlier.js";
import { exportBar, saveCsv, savePng } from "./export.js";
import { bytes, clock, count, duration, el, number } from "./format.js";
import { causeBar, title } from "./spans.js";
import { ProcessTable } from "./table.js";
import { $, button, range, shell, store, view, writeAddress } from "./view.js";

/** @param {string} title @param {HTMLElement} below */
function tile(title, below) {
  const value = el("b", {}, "–"), sub = el("span");
  return { element: el("section", { class: "card tile", "aria-label": title }, el("h2", {}, title), el("div", { class: "figure" }, value, sub), below), value, sub, below };
}

const canvas = (/** @type {string} */ label) => el("canvas", { class: "spark", role: "img", "aria-label": label });

/** What a tile of a device shows. @param {import("./data.js").Device} d */
function deviceFigures(d) {
  const v = d.values, watts = v.power_watts ?? (v.energy_uj !== null && v.energy_uj !== undefined ? v.energy_uj / 1e6 : null);
  const memory = v.memory_used_bytes !== undefined ? bytes(v.memory_used_bytes) : null;
  const rest = [memory, v.temperature_celsius !== undefined ? `${number(v.temperature_celsius, 0)} °C` : null];
  if (d.kind === "energy") return { value: watts === null ? "–" : `${number(watts, 1)} W`, sub: d.id ?? d.driver, series: "energy_uj" };
  return { value: v.util_percent === undefined ? (memory ?? "–") : `${number(v.util_percent, 0)} %`, sub: [...rest, watts === null ? null : `${number(watts, 0)} W`].filter(Boolean).join(" · "), series: "util_percent" };
}

export function overview() {
  const main = $("main"), recorded = Boolean(store.meta.recorded);
  const cores = tile("Cores", el("div", { class: "cores", role: "img", "aria-label": "load of each CPU" }));
  const cpu = tile("CPU", canvas("CPU over time")), memory = tile("Memory", canvas("memory over time"));
  const disk = tile("Disks", canvas("disk transfer over time")), net = tile("Network", canvas("network transfer over time"));
  const tiles = el("div", { class: "tiles", hidden: recorded }, cpu.element, cores.element, memory.element, disk.element, net.element);
  const table = new ProcessTable(store, view, () => writeAddress());
  const search = el("input", { type: "search", placeholder: "Search name, PID, user, cgroup", "aria-label": "Search processes", "aria-keyshortcuts": "/", id: "search", value: view.query });
  const total = el("span", { class: "count", role: "status" });
  const tree = button("Tree", "Children below their parents (t)", () => { view.tree = !view.tree; tree.setAttribute("aria-pressed", String(view.tree)); writeAddress(); table.update(); });
  const all = button("All columns", "Columns that do not fit too", () => { table.all = !table.all; all.setAttribute("aria-pressed", String(table.all)); table.update(); });
  tree.id = "tree";
  tree.setAttribute("aria-pressed", String(view.tree));
  all.setAttribute("aria-pressed", "false");
  const earlier = store.meta.store ? new Earlier() : null;
  const past = button("Earlier", "Processes of the history on disk, also of earlier runs", () => { view.earlier = !view.earlier; writeAddress(); choose(); update(); });
  past.hidden = !earlier;
  past.id = "earlier";
  const exports = exportBar([["CSV", "The rows of the table", () => saveCsv("processes", table.csv())], ["PNG", "The charts", () => savePng("overview", store.meta.host ?? "etwatch")]]);
  const choose = () => {
    const shown = Boolean(earlier && view.earlier);
    past.setAttribute("aria-pressed", String(shown));
    table.element.hidden = shown;
    for (const part of [tree, all, total, exports]) part.hidden = shown;
    if (earlier) earlier.element.hidden = !shown;
  };
  search.addEventListener("input", () => { view.query = search.value; writeAddress(); table.update(); update(); });
  const alertList = el("ul", { class: "alerts" });
  const alertCard = el("section", { class: "card", hidden: true }, el("h2", {}, "Alerts"), alertList);
  const spanRows = el("tbody"), watchesSpans = Boolean(store.meta.inferences || store.meta.marks);
  const spanCard = el("section", { class: "card spans-of-all", hidden: true }, el("h2", {}, store.meta.marks ? "Inferences and marked work" : "Inferences", el("span", { class: "exact exact-yes", title: "every switch, wake-up and page fault of the kernel" }, "exact")),
    el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Inferences" }, el("table", { class: "threads" }, el("thead", {}, el("tr", {}, ...["Process", "Name", "A second", "p50", "p99", "Where the time went"].map((h, i) => el("th", { scope: "col", class: i > 1 && i < 5 ? "num" : "" }, h)))), spanRows)));
  const spans = async () => {
    if (!watchesSpans) return;
    try {
      const a = /** @type {import("./spans.js").Answer} */ (await get(`/api/v1/spans?${range()}`));
      const owners = new Map([...store.processes.values()].map((p) => [p.pid, p])), seconds = Math.max(1, (a.to_ms - a.from_ms) / 1000);
      spanCard.hidden = a.groups.length === 0;
      spanRows.replaceChildren(...[...a.groups].sort((x, y) => y.count * y.mean_ns - x.count * x.mean_ns).slice(0, 8).map((g) => {
        const owner = owners.get(g.pid), name = `${owner?.name ?? "process"} ${g.pid}`;
        return el("tr", { title: g.text ?? "" }, el("td", {}, owner ? el("a", { href: `#/process/${owner.id}` }, name) : name), el("td", {}, title(g)), el("td", { class: "num" }, number(g.count / seconds, 1)),
          el("td", { class: "num" }, duration(g.p50_ns)), el("td", { class: "num" }, duration(g.p99_ns)), el("td", { class: "where" }, causeBar(g.total_ns, g.count * g.mean_ns), el("small", {}, g.text ?? "")));
      }));
    } catch { /* nothing yet */ }
  };
  const notice = store.meta.fallback ? el("p", { class: "notice" }, store.meta.fallback) : null;
  main.replaceChildren(...(notice ? [notice] : []), el("h1", { class: "visually-hidden" }, "Overview"), tiles, alertCard, spanCard,
    el("div", { class: "bar" }, search, total, tree, all, past, exports), table.element, ...(earlier ? [earlier.element] : []));
  choose();
  /** @type {Map<number, ReturnType<typeof tile>>} */ const devices = new Map();
  let busy = false;
  const history = async () => {
    if (busy || recorded) return;
    busy = true;
    try {
      const h = await get(`/api/v1/system/history?${range()}`), s = h.series;
      const pair = (/** @type {string} */ a, /** @type {string} */ b) => (s[a] ?? []).map((/** @type {number|null} */ v, /** @type {number} */ i) => (v === null ? null : v + (s[b]?.[i] ?? 0)));
      spark(/** @type {any} */ (cpu.below), s.cpu_percent ?? [], COLORS[0], store.meta.cpus * 100);
      spark(/** @type {any} */ (memory.below), (s.memory_total_bytes ?? []).map((/** @type {number|null} */ v, /** @type {number} */ i) => (v === null ? null : v - s.memory_available_bytes[i])), COLORS[2], store.system.memory_total_bytes ?? 0);
      spark(/** @type {any} */ (disk.below), pair("disk_read_bytes", "disk_write_bytes"), COLORS[3]);
      spark(/** @type {any} */ (net.below), pair("net_received_bytes", "net_sent_bytes"), COLORS[4]);
      for (const device of store.devices) {
        const own = devices.get(device.number);
        const d = own ? await get(`/api/v1/devices/${device.number}/history?${range()}`) : null;
        if (own && d) spark(/** @type {any} */ (own.below), d.series[deviceFigures(device).series] ?? [], COLORS[5], device.kind === "energy" ? 0 : 100);
      }
    } catch { /* no history yet */ }
    busy = false;
  };
  const drawDevices = () => {
    for (const device of store.devices) {
      let own = devices.get(device.number);
      if (!own) {
        own = tile(device.name ?? (device.kind === "energy" ? `Power, ${device.id ?? ""}` : device.kind.toUpperCase()), canvas(`${device.name ?? device.kind} over time`));
        devices.set(device.number, own);
        tiles.append(own.element);
        own.element.classList.add("device");
        own.element.title = `${device.driver} ${device.id ?? ""}${device.estimated.length ? `; estimated: ${device.estimated.join(", ")}` : ""}`;
      }
      const figures = deviceFigures(device);
      own.value.textContent = device.problem ? "!" : figures.value;
      own.sub.textContent = device.problem ?? figures.sub;
    }
  };
  const update = () => {
    const s = store.system;
    if (s.cpu_percent !== undefined) cpu.value.textContent = `${number((s.cpu_percent ?? 0) / Math.max(1, store.meta.cpus), 0)} %`;
    cpu.sub.textContent = `${((s.cpu_percent ?? 0) / 100).toFixed(2)} of ${store.meta.cpus} CPUs`;
    cores.value.textContent = (s.load_1 ?? 0).toFixed(1);
    cores.sub.textContent = `load · ${count(s.switches)} switches/s`;
    if (s.memory_total_bytes) {
      memory.value.textContent = bytes(s.memory_total_bytes - (s.memory_available_bytes ?? 0));
      memory.sub.textContent = `of ${bytes(s.memory_total_bytes)} in use`;
    }
    disk.value.textContent = `${bytes(s.disk_write_bytes)}/s`;
    disk.sub.textContent = `written · ${bytes(s.disk_read_bytes)}/s read`;
    net.value.textContent = `${bytes(s.net_received_bytes)}/s`;
    net.sub.textContent = `received · ${bytes(s.net_sent_bytes)}/s sent`;
    while (cores.below.childElementCount < store.cpus.length) cores.below.append(el("div", { class: "core" }, el("i")));
    store.cpus.forEach((v, i) => {
      const core = /** @type {HTMLElement} */ (cores.below.children[i]);
      core.title = `CPU ${i}: ${number(v, 0)} %`;
      /** @type {HTMLElement} */ (core.firstChild).style.height = `${v ?? 0}%`;
    });
    drawDevices();
    table.update();
    const alive = [...store.processes.values()].filter((p) => recorded || !p.exit_ms).length;
    total.textContent = view.query ? `${table.rows.length} of ${alive} processes` : recorded ? `${alive} processes, averages over their life in the recording` : `${alive} processes${s.processes_started === undefined ? "" : ` · ${count(s.processes_started)} starts/s`}`;
    const recent = store.alerts.slice(-5).reverse();
    alertCard.hidden = recent.length === 0;
    alertList.replaceChildren(...recent.map((a) => el("li", { class: a.ended ? "" : "open" }, el("a", { href: `#/process/${a.id}` }, `${clock(a.from_ms)}  ${a.text}`))));
    void history();
    if (view.earlier) void earlier?.update();
    void spans();
  };
  shell.page = { update, leave: () => {} };
  update();
}
