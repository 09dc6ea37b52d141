// SPDX-License-Identifier: MIT
// Charts on uPlot: lines, areas and stacked bands with a shared time axis, a tooltip, and zoom by dragging.
import { clock, day, el } from "./format.js";

/** @typedef {{label: string, values: (number|null)[], color: string, dash?: number[]}} Series */

/** @type {any} */
const UPlot = /** @type {any} */ (window).uPlot;

/** Steps of an axis of bytes: 1, 2, 5 … of each unit. */
const BYTE_STEPS = [0, 1, 2, 3, 4, 5].flatMap((k) => [1, 2, 5, 10, 20, 50, 100, 200, 500].map((m) => m * 1024 ** k));

export const COLORS = ["#38bdf8", "#5eead4", "#a78bfa", "#fbbf24", "#f472b6", "#34d399", "#fb923c", "#818cf8", "#e879f9", "#a3e635",
  "#22d3ee", "#f87171", "#c4b5fd", "#fde047", "#4ade80", "#93c5fd", "#64748b"];

/** @param {string} name */
function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {string} color @param {number} alpha */
function fade(color, alpha) {
  const n = parseInt(color.slice(1), 16);
  return `rgb(${n >> 16} ${(n >> 8) & 255} ${n & 255} / ${alpha})`;
}

/** Each series on top of those before. @param {Series[]} series */
function stack(series) {
  /** @type {(number|null)[]} */ let sum = [];
  return series.map((s) => {
    sum = s.values.map((v, i) => (v === null && (sum[i] ?? null) === null ? null : (sum[i] ?? 0) + (v ?? 0)));
    return sum;
  });
}

export class Chart {
  /**
   * @param {HTMLElement} card
   * @param {{title: string, format: (v: number|null|undefined) => string, stacked?: boolean, height?: number, note?: string, noteClass?: string,
   *   noteTitle?: string, max?: number, bytes?: boolean, relative?: boolean, onZoom?: (from: number, to: number) => void, onReset?: () => void}} options
   */
  constructor(card, options) {
    this.options = options;
    this.card = card;
    this.holder = el("div", { class: "plot" });
    this.tip = el("div", { class: "tip" });
    this.legend = el("div", { class: "legend" });
    this.summary = el("p", { class: "visually-hidden" });
    const note = options.note ? el("span", { class: `exact ${options.noteClass ?? ""}`, title: options.noteTitle ?? "" }, options.note) : null;
    card.append(el("h2", {}, options.title, note), this.holder, this.legend, this.summary);
    this.holder.append(this.tip);
    /** @type {any} */ this.plot = null;
    /** @type {Series[]} */ this.series = [];
    /** @type {number[]} */ this.times = [];
    /** @type {{t: number, text: string, color: string}[]} */ this.marks = [];
    new ResizeObserver(() => this.resize()).observe(card);
  }

  resize() {
    if (this.plot) this.plot.setSize({ width: Math.max(200, this.holder.clientWidth), height: this.options.height ?? 170 });
  }

  /** @param {number[]} times milliseconds @param {Series[]} series @param {{t: number, text: string, color: string}[]} [marks] */
  set(times, series, marks = []) {
    this.marks = marks;
    this.times = times;
    const shape = series.map((s) => s.label).join("\n");
    const same = this.plot && shape === this.series.map((s) => s.label).join("\n");
    this.series = series;
    const shown = this.options.stacked ? stack(series).reverse() : series.map((s) => s.values);
    const data = [times.map((t) => t / 1000), ...shown];
    if (same) this.plot.setData(data);
    else this.build(data);
    this.describe();
  }

  /** As an axis shows it: milliseconds where the steps are shorter than a second. @param {number} ms */
  time(ms) {
    const step = this.times.length > 1 ? this.times[1] - this.times[0] : 1000, length = this.times.length * step;
    if (this.options.relative) return `${(ms / 1000).toFixed(step < 1000 ? 2 : 0)} s`;
    return length > 72e6 ? day(ms) : clock(ms, step < 1000 ? 3 : 0);
  }

  /** The ticks of the axis: as many digits as their steps need. @param {number[]} ticks seconds */
  ticks(ticks) {
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1, digits = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
    const days = this.times.length > 1 && this.times.length * (this.times[1] - this.times[0]) > 72e6;
    return ticks.map((v) => (this.options.relative ? `${v.toFixed(digits)} s` : days ? day(v * 1000) : clock(v * 1000, digits)));
  }

  /** @param {any} data */
  build(data) {
    if (this.plot) this.plot.destroy();
    const stacked = this.options.stacked;
    const drawn = stacked ? [...this.series].reverse() : this.series;
    const axis = { stroke: style("--faint"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    this.plot = new UPlot({
      width: Math.max(200, this.holder.clientWidth),
      height: this.options.height ?? 170,
      padding: [10, 22, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, sync: { key: "time", setSeries: false } },
      legend: { show: false },
      scales: { x: { time: true }, y: { range: (/** @type {any} */ _u, /** @type {number} */ _min, /** @type {number} */ max) => [0, Math.max(this.options.max ?? 0, (max || 1) * 1.08)] } },
      axes: [{ ...axis, space: 80, size: 28, values: (/** @type {any} */ _u, /** @type {number[]} */ ticks) => this.ticks(ticks) }, { ...axis, size: 66, space: 34, ...(this.options.bytes ? { incrs: BYTE_STEPS } : {}), values: (/** @type {any} */ _u, /** @type {number[]} */ ticks) => ticks.map((v) => this.options.format(v)) }],
      series: [{}, ...drawn.map((s) => ({
        stroke: s.color, width: stacked ? 1 : 1.75, fill: stacked ? fade(s.color, 0.75) : this.series.length === 1 ? this.gradient(s.color) : undefined,
        points: { show: false }, spanGaps: false, dash: s.dash,
      }))],
      hooks: {
        draw: [(/** @type {any} */ u) => this.drawMarks(u)],
        setCursor: [(/** @type {any} */ u) => this.showTip(u)],
        setSelect: [(/** @type {any} */ u) => {
          if (u.select.width > 4 && this.options.onZoom)
            this.options.onZoom(u.posToVal(u.select.left, "x") * 1000, u.posToVal(u.select.left + u.select.width, "x") * 1000);
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    }, data, this.holder);
    this.plot.over.addEventListener("dblclick", () => this.options.onReset?.());
  }

  /** @param {string} color */
  gradient(color) {
    return (/** @type {any} */ u) => {
      const fill = u.ctx.createLinearGradient(0, u.bbox.top, 0, u.bbox.top + u.bbox.height);
      fill.addColorStop(0, fade(color, 0.38));
      fill.addColorStop(1, fade(color, 0.02));
      return fill;
    };
  }

  /** Starts, exits, alerts. @param {any} u */
  drawMarks(u) {
    const rows = [-Infinity, -Infinity, -Infinity]; // where each row of texts is free: close ones would cover each other
    for (const mark of [...this.marks].sort((a, b) => a.t - b.t)) {
      const x = u.valToPos(mark.t / 1000, "x", true);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      u.ctx.save();
      u.ctx.strokeStyle = u.ctx.fillStyle = mark.color;
      u.ctx.lineWidth = devicePixelRatio;
      u.ctx.setLineDash([4, 3]);
      u.ctx.beginPath();
      u.ctx.moveTo(x, u.bbox.top);
      u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
      u.ctx.stroke();
      u.ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      u.ctx.textAlign = "left";
      const row = rows.findIndex((free) => free <= x);
      if (row >= 0) {
        u.ctx.fillText(mark.text, x + 4 * devicePixelRatio, u.bbox.top + (12 + 14 * row) * devicePixelRatio);
        rows[row] = x + u.ctx.measureText(mark.text).width + 8 * devicePixelRatio;
      }
      u.ctx.restore();
    }
  }

  /** @param {any} u */
  showTip(u) {
    const i = u.cursor.idx;
    if (i === null || i === undefined || u.cursor.left < 0) { this.tip.style.display = "none"; this.describe(); return; }
    this.tip.style.display = "block";
    this.tip.textContent = this.time(this.times[i]) + (this.series.length === 1 ? `  ${this.options.format(this.series[0].values[i])}` : "");
    this.tip.style.left = `${Math.min(u.cursor.left + 74, this.holder.clientWidth - 130)}px`;
    this.tip.style.top = "2px";
    this.describe(i);
  }

  /** The legend with the values at an index, or the latest. @param {number} [at] */
  describe(at) {
    /** @param {Series} s */
    const pick = (s) => {
      if (at !== undefined) return s.values[at];
      for (let i = s.values.length - 1; i >= 0; i--) if (s.values[i] !== null) return s.values[i];
      return null;
    };
    const entries = this.series.map((s) => {
      const box = el("i");
      box.style.background = s.color;
      return el("span", {}, box, s.label, el("b", {}, this.options.format(pick(s))));
    });
    this.legend.replaceChildren(...(this.series.length > 1 ? entries : []));
    if (at === undefined)
      this.summary.textContent = `${this.options.title}: ${this.series.map((s) => `${s.label} ${this.options.format(pick(s))}`).join(", ")}`;
  }

  destroy() {
    if (this.plot) this.plot.destroy();
  }
}

/** A small line without axes. @param {HTMLCanvasElement} canvas @param {(number|null)[]} values @param {string} color @param {number} [max] */
export function spark(canvas, values, color, max) {
  const ratio = devicePixelRatio;
  const width = canvas.clientWidth * ratio, height = canvas.clientHeight * ratio;
  if (width === 0) return;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (!context || values.length < 2) return;
  const top = Math.max(max ?? 0, ...values.map((v) => v ?? 0)) || 1;
  const fill = context.createLinearGradient(0, 0, 0, height);
  fill.addColorStop(0, fade(color, 0.4));
  fill.addColorStop(1, fade(color, 0));
  context.beginPath();
  values.forEach((v, i) => {
    const x = (i / (values.length - 1)) * width, y = height - 2 * ratio - ((v ?? 0) / top) * (height - 4 * ratio);
    if (i === 0) context.moveTo(x, y); else context.lineTo(x, y);
  });
  context.strokeStyle = color;
  context.lineWidth = 1.6 * ratio;
  context.lineJoin = "round";
  context.stroke();
  context.lineTo(width, height);
  context.lineTo(0, height);
  context.fillStyle = fill;
  context.fill();
}
