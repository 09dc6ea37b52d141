// SPDX-License-Identifier: MIT
// Numbers for people, and DOM elements without HTML text: every foreign name becomes a text node.

/** @param {number|null|undefined} value @param {number} [digits] */
export function number(value, digits = 1) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && Math.abs(value) < 0.05 && digits < 3) return value > 0 ? "<0.1" : value.toFixed(2);
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) >= 100 ? 0 : digits });
}

/** @param {number|null|undefined} value */
export function bytes(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${value.toFixed(unit === 0 || Math.abs(value) >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** @param {number|null|undefined} value */
export function count(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1e9) return `${(value / 1e9).toFixed(1)} G`;
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (Math.abs(value) >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return number(value, 1);
}

/** A time of nanoseconds. @param {number|null|undefined} ns */
export function duration(ns) {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return "–";
  if (ns < 1e6) return `${(ns / 1e3).toFixed(0)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(1)} ms`;
  const seconds = ns / 1e9;
  if (seconds < 120) return `${seconds.toFixed(2)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} d`;
}

/** One decimal below 100, so that columns align. @param {number|null|undefined} value */
export function percent(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value > 0 && value < 0.05) return "<0.1 %";
  return value === 0 ? "0 %" : `${value.toFixed(value >= 99.95 ? 0 : 1)} %`;
}

/**
 * A value of a metric, by its unit. Counters are rates a second.
 * @param {import("./data.js").Metric} metric @param {number|null|undefined} value
 */
export function show(metric, value) {
  const rate = metric.kind === "counter" ? "/s" : "";
  switch (metric.unit) {
    case "bytes": return bytes(value) + rate;
    case "ns": return metric.kind === "counter" && Number.isFinite(value) ? percent(Number(value) / 1e7) : duration(value);
    case "percent": return percent(value);
    case "uj": return metric.kind === "counter" && Number.isFinite(value) ? `${number(Number(value) / 1e6, 2)} W` : number(value);
    case "mask": return Number.isFinite(value) ? `0x${Number(value).toString(16)}` : "–";
    default: return count(value) + rate;
  }
}

/** @param {number} ms @param {number} [digits] of the second */
export function clock(ms, digits = 0) {
  const text = new Date(ms).toLocaleTimeString("en-GB", { hour12: false });
  return digits ? `${text}.${String(Math.floor(((ms % 1000) + 1000) % 1000)).padStart(3, "0").slice(0, digits)}` : text;
}

/** Day and time, for days of history. @param {number} ms */
export function day(ms) {
  const date = new Date(ms);
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", hour12: false })}`;
}

/** The time that a point stands for. @param {number} ms */
export function perPoint(ms) {
  return ms >= 120000 ? `${ms / 60000} min per point` : ms >= 1000 ? `${ms / 1000} s per point` : `${ms} ms per point`;
}

/** A duration of microseconds. @param {number} us */
export function micros(us) {
  return us < 1000 ? `${us < 10 ? us.toFixed(1) : us.toFixed(0)} µs` : us < 1e6 ? `${(us / 1000).toFixed(us < 1e4 ? 2 : 1)} ms` : `${(us / 1e6).toFixed(2)} s`;
}

/** The name of a metric for a title: "io_read_bytes" is "I/O read". @param {string} name */
export function words(name) {
  const known = /** @type {Record<string, string>} */ ({ cpu_percent: "CPU", cpu_ns: "CPU time", runq_wait_ns: "CPU wait", rss_bytes: "Memory", rss_peak_bytes: "Peak memory", energy_uj: "Energy" });
  const text = known[name] ?? name.replace(/_(ns|bytes|uj|percent)$/, "").replaceAll("_", " ").replace(/^(cpu|gpu|npu)\b/, (w) => w.toUpperCase()).replace(/^io\b/, "I/O");
  return text[0].toUpperCase() + text.slice(1);
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Record<string, string|number|boolean|null|undefined>} [attributes] @param {...(Node|string|null)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** @param {string} name @param {BlobPart} content @param {string} type */
export function download(name, content, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A CSV field; text that a spreadsheet would execute gets a quote in front. @param {unknown} value */
export function csvField(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
