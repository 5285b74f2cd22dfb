// Time against latency: the stronger a cell, the more operations a second ended in it. Several operations have a colour each.

import { Plot, LEFT } from "./axis.js";
import { css, isDark, ramp } from "./color.js";
import { time } from "./format.js";
import { merge, quantile, rowsOf } from "./model.js";

/** The scale that several pictures share; null if none has one. */
export function joined(scales) {
  return scales.filter(Boolean).reduce((all, s) => (all ? {
    low: Math.min(all.low, s.low), high: Math.max(all.high, s.high), most: Math.max(all.most, s.most), least: Math.min(all.least, s.least), rates: [...all.rates, ...s.rates],
  } : s), null);
}

/** Strength of a rate's colour, from 0 to 1, and the rate that has a strength. */
const STRENGTHS = {
  // Logarithm of the rate: a slow operation beside thousands stays visible.
  log: ({ most, least }) => [(rate) => Math.log(rate / least) / (Math.log(most / least) || 1), (part) => least * (most / least) ** part],
  linear: ({ most }) => [(rate) => rate / most, (part) => most * part],
  // Each strength has as many cells as any other.
  quantile: ({ rates }) => {
    const all = rates.sort((a, b) => a - b);
    const rank = new Map(all.map((rate, i) => [rate, i]));
    const last = all.length - 1 || 1;
    return [(rate) => rank.get(rate) / last, (part) => all[Math.round(part * (all.length - 1))]];
  },
};
const shade = (strength, hue) => `rgb(${ramp(0.12 + 0.88 * strength, hue).join(" ")})`;

export class HeatMap {
  /** `pick({from, to, low, high})` gets the dragged rectangle; `hover(cell or null)` what is below the pointer. A small one
   * has neither, and no lines of quantiles. */
  constructor(canvas, { pick, hover } = {}) {
    this.plot = new Plot(canvas);
    this.columns = [];
    this.cursor = null;
    this.small = !pick;
    if (this.small) return;
    let start = null;
    const place = (e) => {
      const box = canvas.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (e) => {
      if (e.button !== 0 || !this.columns.length) return;
      start = place(e);
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => {
      const here = place(e);
      hover(start ? null : this.cell(...here), here);
      if (start) this.rubber(start, here);
    });
    canvas.addEventListener("pointerleave", () => hover(null));
    canvas.addEventListener("pointerup", (e) => {
      if (!start) return;
      const [a, b] = [start, place(e)];
      start = null;
      pick(this.rectangle(a, b));
    });
    canvas.addEventListener("pointercancel", () => {
      start = null;
    });
  }

  /** Rows with operations, and two more on either side. */
  rows() {
    let [low, high] = [Infinity, -Infinity];
    for (const { all } of this.columns) {
      for (const i of all.buckets.keys()) [low, high] = [Math.min(low, i), Math.max(high, i)];
    }
    if (low > high) return null;
    return [Math.max(0, low - 2), Math.min(this.rowOf[this.edges.length], high + 2)];
  }

  /** `layersOf(window)` gives the times that are drawn, one for each colour. Returns the scale that it needs, or null. */
  prepare(windows, layersOf, edges) {
    if (this.edges !== edges) [this.edges, this.rowOf] = [edges, rowsOf(edges)];
    const byRow = (t) => merge([t && { ...t, buckets: [...t.buckets].map(([i, n]) => [this.rowOf[i], n]) }]);
    this.columns = windows.map((window) => {
      const layers = layersOf(window);
      const rows = layers.map(byRow);
      return { window, layers, times: merge(layers), rows, all: merge(rows) };
    });
    const range = this.rows();
    if (!range) return null;
    let most = 0;
    const rates = [];
    for (const { window, all, rows } of this.columns) {
      for (const n of all.buckets.values()) most = Math.max(most, n / window.seconds);
      for (const l of rows) for (const n of l.buckets.values()) rates.push(n / window.seconds);
    }
    // The least is one operation in the longest window.
    const longest = this.columns.reduce((all, c) => Math.max(all, c.window.seconds), 0);
    return { low: range[0], high: range[1], most, least: 1 / longest, rates };
  }

  /** Pictures with one scale can be compared; see [`joined`]. */
  draw(view, scale) {
    const { plot } = this;
    plot.begin(view);
    this.range = scale && [scale.low, scale.high];
    this.key = [];
    plot.gaps(view.gaps);
    plot.times();
    if (!this.range) return;
    const [low, high] = this.range;
    const { g } = plot;
    const rowHeight = plot.plotHeight / (high - low + 1);
    const top = (i) => (high - i) * rowHeight;
    const [strength, rateOf] = STRENGTHS[view.scale ?? "log"](scale);
    /** Colours of the legend, and their operations a second. */
    this.key = [0, 0.25, 0.5, 0.75, 1].map((part) => [shade(part, this.columns[0]?.rows.length > 1 ? 0 : null), rateOf(part)]);
    for (const { window, rows, all } of this.columns) {
      const [a, b] = [Math.max(LEFT, plot.x(window.at - window.seconds)), plot.x(window.at)];
      if (b <= LEFT) continue;
      for (const i of all.buckets.keys()) {
        // Operations that have the same cell share its height.
        const here = rows.map((l, hue) => [hue, l.buckets.get(i)]).filter(([, n]) => n);
        const height = rowHeight / here.length;
        here.forEach(([hue, n], k) => {
          g.fillStyle = shade(strength(n / window.seconds), rows.length > 1 ? hue : null);
          g.fillRect(a, top(i) + k * height, Math.max(1, b - a + 0.4), Math.ceil(height + 0.4));
        });
      }
    }
    if (!this.small) {
      this.overlay(0.5, []);
      this.overlay(0.99, [5, 3]);
    }
    this.labels(low, high);
    const s = view.selection;
    const whole = this.small || s?.low === undefined;
    if (s) plot.selection(s, whole ? 0 : top(this.rowOf[s.high]), whole ? plot.plotHeight : top(this.rowOf[s.low]) + rowHeight);
    if (this.cursor !== null) this.marker();
  }

  /** The line of a quantile. */
  overlay(q, dash) {
    const { plot, edges } = this;
    const { g } = plot;
    g.save();
    g.strokeStyle = css("--ink");
    g.globalAlpha = isDark() ? 0.85 : 0.7;
    g.lineWidth = 1;
    g.setLineDash(dash);
    g.beginPath();
    let last = null;
    for (const { window, times } of this.columns) {
      const value = quantile(times, q, edges);
      if (value === null) {
        last = null;
        continue;
      }
      const y = this.y(value);
      const x = Math.max(LEFT, plot.x(window.at - window.seconds / 2));
      if (last === null || window.at - window.seconds - last > 1.5) g.moveTo(x, y);
      else g.lineTo(x, y);
      last = window.at;
    }
    g.stroke();
    g.restore();
  }

  /** The height of a duration: between edges by its logarithm. */
  y(seconds) {
    const [low, high] = this.range;
    const i = this.edges.findIndex((e) => seconds <= e);
    const row = this.rowOf[i < 0 ? this.edges.length : i];
    const { above, upTo } = this.bounds(row);
    const part = above && upTo < Infinity ? Math.log(seconds / above) / Math.log(upTo / above) : 0.5;
    return (this.plot.plotHeight * (high - row + 1 - part)) / (high - low + 1);
  }

  labels(low, high) {
    const { plot } = this;
    const marks = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60].filter((m) => this.y(m) >= 0 && this.y(m) < plot.plotHeight);
    // A narrow range has no power of ten in it.
    if (marks.length < 2) marks.push(this.bounds(high - 1).upTo, this.bounds(low + 1).upTo);
    plot.labels(marks.map((m) => [this.y(m), time(m)]));
  }

  cell(x, y) {
    if (!this.range || x < LEFT || y > this.plot.plotHeight) return null;
    const at = this.plot.at(x);
    const column = this.columns.find((c) => at > c.window.at - c.window.seconds && at <= c.window.at);
    if (!column) return null;
    const row = this.row(y);
    return { ...this.bounds(row), row, window: column.window, counts: column.rows.map((l) => l.buckets.get(row) ?? 0), all: column.times.count };
  }

  row(y) {
    const [low, high] = this.range;
    const i = high - Math.floor((y / this.plot.plotHeight) * (high - low + 1));
    return Math.min(high, Math.max(low, i));
  }

  /** Durations in a row: above `above`, up to `upTo`. */
  bounds(row) {
    const { low, high } = this.buckets(row, row);
    return { above: low ? this.edges[low - 1] : 0, upTo: this.edges[high] ?? Infinity };
  }

  /** The buckets of these rows. */
  buckets(low, high) {
    return { low: this.rowOf.indexOf(low), high: this.rowOf.lastIndexOf(high) };
  }

  rectangle([x0, y0], [x1, y1]) {
    if (Math.abs(x1 - x0) < 4 && Math.abs(y1 - y0) < 4) {
      const cell = this.cell(x1, y1);
      return cell && { from: cell.window.at - cell.window.seconds, to: cell.window.at, ...this.buckets(cell.row, cell.row) };
    }
    if (!this.range) return null;
    const [a, b] = [Math.min(x0, x1), Math.max(x0, x1)].map((x) => this.plot.at(Math.max(LEFT, x)));
    const [high, low] = [Math.min(y0, y1), Math.max(y0, y1)].map((y) => this.row(y));
    return { from: a, to: b, ...this.buckets(low, high) };
  }

  rubber([x0, y0], [x1, y1]) {
    this.onRubber?.();
    const { g } = this.plot;
    g.strokeStyle = css("--ink");
    g.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
  }

  /** Moves the keyboard's column; returns it. */
  move(step) {
    if (!this.columns.length) return null;
    const last = this.columns.length - 1;
    const found = this.columns.findIndex((c) => c.window.at === this.cursor);
    const now = found < 0 ? last : Math.min(last, Math.max(0, found + step));
    this.cursor = this.columns[now].window.at;
    return this.columns[now];
  }

  marker() {
    const column = this.columns.find((c) => c.window.at === this.cursor);
    if (!column) return;
    const { plot } = this;
    const { g } = plot;
    g.strokeStyle = css("--link");
    g.lineWidth = 2;
    const [a, b] = [plot.x(column.window.at - column.window.seconds), plot.x(column.window.at)];
    g.strokeRect(a, 0, Math.max(2, b - a), plot.plotHeight);
  }
}
