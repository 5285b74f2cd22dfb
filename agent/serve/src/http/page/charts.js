// Areas and sparklines over the shared time axis.

import { Plot } from "./axis.js";
import { css, phaseColor } from "./color.js";

/** Layers of one stack: each window has a value for each layer, or null. */
export class Stack {
  /** `unit` stands at the axis. */
  constructor(canvas, unit) {
    this.plot = new Plot(canvas);
    this.unit = unit;
  }

  /** `values(window)` gives an array of numbers or null. Returns the largest sum: pictures side by side have one scale. */
  prepare(windows, values) {
    this.all = windows.map((w) => [w, values(w)]);
    const total = (v) => (v ? v.reduce((sum, x) => sum + (x ?? 0), 0) : 0);
    return Math.max(...this.all.map(([, v]) => total(v)), 0);
  }

  draw(view, largest) {
    const { plot, all } = this;
    plot.begin(view);
    const { g } = plot;
    const most = nice(largest);
    plot.gaps(view.gaps);
    const y = (v) => plot.plotHeight * (1 - v / most);
    for (const [w, v] of all) {
      if (!v) continue;
      const [a, b] = [plot.x(w.at - w.seconds), plot.x(w.at)];
      let below = 0;
      v.forEach((part, i) => {
        if (!part) return;
        g.fillStyle = phaseColor(i);
        g.fillRect(a, y(below + part), Math.max(1, b - a + 0.5), y(below) - y(below + part));
        below += part;
      });
    }
    plot.labels([[y(most), String(most)], [y(most) + 20, this.unit], [y(most / 2), String(most / 2)], [y(0), "0"]]);
    plot.times();
    plot.selection(view.selection);
  }
}

/** A part of a whole over time as an area, and another one as a line: [window, part or null, other part or null]. */
export class Parts {
  constructor(canvas) {
    this.plot = new Plot(canvas);
  }

  draw(view, all) {
    const { plot } = this;
    plot.begin(view);
    const { g } = plot;
    plot.gaps(view.gaps);
    const y = (v) => plot.plotHeight * (1 - Math.min(1, v));
    g.fillStyle = css("--link");
    g.strokeStyle = css("--bad");
    g.lineWidth = 2;
    for (const [w, part, other] of all) {
      const [a, b] = [plot.x(w.at - w.seconds), plot.x(w.at)];
      if (part) g.fillRect(a, y(part), Math.max(1, b - a + 0.5), plot.plotHeight - y(part));
      if (!other) continue;
      g.beginPath();
      g.moveTo(a, y(other));
      g.lineTo(b, y(other));
      g.stroke();
    }
    plot.labels([[0, "100 %"], [plot.plotHeight, "0"]]);
    plot.times();
    plot.selection(view.selection);
  }
}

/** A small line of [time, value] without an axis. */
export function sparkline(canvas, view, points) {
  const scale = devicePixelRatio || 1;
  const [w, h] = [canvas.clientWidth || 120, canvas.clientHeight || 20];
  [canvas.width, canvas.height] = [Math.round(w * scale), Math.round(h * scale)];
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  const most = Math.max(...points.map(([, v]) => v), 0);
  if (!most) return;
  g.strokeStyle = css("--link");
  g.lineWidth = 1.25;
  g.beginPath();
  points.forEach(([at, v], i) => {
    const x = ((at - view.from) / (view.to - view.from)) * (w - 2) + 1;
    const y = h - 1 - (v / most) * (h - 2);
    if (i) g.lineTo(x, y);
    else g.moveTo(x, y);
  });
  g.stroke();
}

/** The next round number. */
export function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((s) => s * power >= value);
  return Number((step * power).toPrecision(2));
}
