// SPDX-License-Identifier: MIT
// What the page knows: the metrics, the processes with their latest values, the latest seconds of the machine. Filled
// from the API once, then kept current by the stream.

/**
 * @typedef {{name: string, kind: string, unit: string, group: string, help: string, exactness?: string}} Metric
 * @typedef {{id: string, pid: number, ppid: number|null, name: string|null, user: string|null, cgroup: string|null,
 *   cmdline?: string, start_ms: number, exit_ms: number|null, exit_code?: number, exit_signal?: number}} Identity
 * @typedef {Identity & {values: (number|null)[], active: boolean, fresh: number, trend: number[], text?: string}} Process
 * @typedef {{id: string, name: string, metric: string, condition: string, text: string, from_ms: number, to_ms: number, ended: boolean}} Alert
 * @typedef {{number: number, kind: string, driver: string, id: string|null, name: string|null, problem: string|null, t_ms: number|null,
 *   values: Record<string, number|null>, estimated: string[]}} Device
 * @typedef {{tid: number, name: string|null, known_from_ms: number, intervals: number[][]}} StripThread
 * @typedef {{stage: string, problem: string|null, from_ms: number, to_ms: number, known_from_ms: number|null, truncated: boolean, lost: number,
 *   threads: StripThread[], preempted_by: {tid: number, name: string|null, count: number, us: number}[], names: Record<string, string>}} Strip
 * @typedef {{from_ms: number, to_ms: number, step_ms: number, count: number, resolution: string}} Range
 * @typedef {Range & {series: Record<string, (number|null)[]>, peaks?: Record<string, (number|null)[]>, cpus?: (number|null)[][]}} History
 * @typedef {Range & {threads: {tid: number, name: string, cpu_ns: (number|null)[], runq_wait_ns: (number|null)[]}[]}} Threads
 */

/** Seconds in the line of a process in the table. */
export const TREND = 60;
/** A connection that does not return within this time is lost. */
const AWAY_MS = 2000;

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error || `status ${answer.status}`), { status: answer.status });
  return body;
}

/** A long alert is reported when it begins to hold and when it ends: the latter replaces the former. @param {Alert[]} alerts */
export function latestAlerts(alerts) {
  const kept = /** @type {Map<string, Alert>} */ (new Map());
  for (const alert of alerts) kept.set(`${alert.id} ${alert.condition} ${alert.from_ms}`, alert);
  return [...kept.values()].slice(-256);
}

/** Counters start from 0 when a process rests: the stream reports only processes that did something. */
export class Store extends EventTarget {
  constructor() {
    super();
    /** @type {any} */ this.meta = null;
    /** @type {Map<string, Process>} */ this.processes = new Map();
    /** @type {string[]} */ this.columns = [];
    /** @type {Map<string, Metric>} */ this.metrics = new Map();
    /** @type {Record<string, number|null>} */ this.system = {};
    /** @type {(number|null)[]} */ this.cpus = [];
    /** @type {Alert[]} */ this.alerts = [];
    /** @type {Device[]} */ this.devices = [];
    /** @type {any} */ this.self = {};
    this.now = 0;
    this.connected = false;
    this.paused = false;
    this.lost = 0;
  }

  async load() {
    const [meta, table, alerts, devices] = await Promise.all([get("/api/v1/meta"), get("/api/v1/processes?exited=1&trend=1"), get("/api/v1/alerts"), get("/api/v1/devices")]);
    this.meta = meta;
    this.self = meta.self;
    this.now = table.t_ms || meta.now_ms || Date.now();
    this.columns = table.columns;
    this.metrics = new Map(meta.columns.map((/** @type {Metric} */ m) => [m.name, m]));
    this.alerts = latestAlerts(alerts.alerts);
    this.devices = devices.devices;
    const before = this.processes;
    this.processes = new Map(table.processes.map((/** @type {any} */ p) => [p.id, { ...p, active: true, fresh: 0, trend: p.trend ?? before.get(p.id)?.trend ?? [] }]));
    this.dispatchEvent(new Event("loaded"));
  }

  connect() {
    if (this.meta.recorded) return; // nothing more comes
    const source = new EventSource("/api/v1/stream");
    /** @type {number|undefined} */ let away;
    const report = (/** @type {boolean} */ connected) => {
      clearTimeout(away);
      away = undefined;
      if (connected === this.connected) return;
      this.connected = connected;
      this.dispatchEvent(new Event("link"));
    };
    source.addEventListener("open", () => report(true));
    // A stream that ends is opened again at once, on Windows after every event: only a longer pause is a lost connection.
    source.addEventListener("error", () => { away ??= setTimeout(report, source.readyState === EventSource.CLOSED ? 0 : AWAY_MS, false); });
    source.addEventListener("lost", () => { this.lost += 1; void this.load(); });
    source.addEventListener("second", (event) => {
      if (this.paused) return;
      const second = JSON.parse(/** @type {MessageEvent} */ (event).data);
      if (second.t_ms - this.now > 5000) void this.load(); // a gap: the connection was away
      this.take(second);
    });
  }

  /** @param {any} second */
  take(second) {
    if (second.columns.length !== this.columns.length) void this.refreshColumns(second.columns);
    this.now = second.t_ms;
    this.system = second.system;
    this.cpus = second.cpus;
    this.self = second.self;
    this.devices = second.devices;
    const counters = this.columns.map((name) => name === "cpu_percent" || this.metrics.get(name)?.kind === "counter");
    for (const process of this.processes.values()) {
      if (!process.active) continue;
      process.active = false;
      counters.forEach((counter, i) => { if (counter && process.values[i] !== null) process.values[i] = 0; });
    }
    for (const news of second.news) {
      const known = this.processes.get(news.id);
      if (known) { Object.assign(known, news); known.text = undefined; }
      else this.processes.set(news.id, { ...news, values: this.columns.map(() => null), active: false, fresh: performance.now(), trend: [] });
    }
    for (const [id, ...values] of second.active) {
      const process = this.processes.get(id);
      if (process) { process.values = values; process.active = true; }
    }
    this.addTrend();
    if (second.alerts.length) this.alerts = latestAlerts([...this.alerts, ...second.alerts]);
    this.forget();
    this.dispatchEvent(new Event("second"));
  }

  /** CPU of the last minute, for the line in the table. */
  addTrend() {
    const i = this.columns.indexOf("cpu_percent");
    for (const process of this.processes.values()) {
      if (process.trend.length === 0 && !process.active) continue;
      process.trend.push(i < 0 ? 0 : process.values[i] ?? 0);
      if (process.trend.length > TREND) process.trend.shift();
    }
  }

  /** Processes that exited stay for a minute. */
  forget() {
    for (const [id, process] of this.processes)
      if (process.exit_ms && this.now - process.exit_ms > 60000 && !this.meta.recorded) this.processes.delete(id);
  }

  /** @param {string[]} columns */
  async refreshColumns(columns) {
    this.columns = columns;
    await this.load();
  }

  /** @param {Process} process @param {string} name @returns {number|null} */
  value(process, name) {
    const i = this.columns.indexOf(name);
    return i < 0 ? null : process.values[i] ?? null;
  }
}
