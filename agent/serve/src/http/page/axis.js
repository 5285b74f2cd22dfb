// Base of all pictures: a canvas at the screen's resolution, one time axis, gaps and the selection.

import { css } from "./color.js";

export const LEFT = 64;
const BOTTOM = 18;

/** A canvas with room for labels at the left and, if wanted, times below. */
export class Plot {
  constructor(canvas, { times = true } = {}) {
    this.canvas = canvas;
    this.g = canvas.getContext("2d");
    this.bottom = times ? BOTTOM : 2;
  }

  begin(view) {
    const { canvas, g } = this;
    const scale = devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    const [w, h] = [Math.round(this.width * scale), Math.round(this.height * scale)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    this.view = view;
    this.plotHeight = this.height - this.bottom;
    // About as large as the text around it.
    this.font = Math.round(parseFloat(getComputedStyle(canvas).fontSize) * 0.8);
    g.font = `${this.font}px system-ui, sans-serif`;
    g.textBaseline = "middle";
  }

  x(at) {
    const { from, to } = this.view;
    return LEFT + ((at - from) / (to - from)) * (this.width - LEFT - 2);
  }

  at(x) {
    const { from, to } = this.view;
    return from + ((x - LEFT) / (this.width - LEFT - 2)) * (to - from);
  }

  /** Stretches without a window are hatched: no data is not zero. */
  gaps(all) {
    const { g } = this;
    g.strokeStyle = css("--line");
    g.lineWidth = 1;
    for (const [from, to] of all) {
      const [a, b] = [Math.max(LEFT, this.x(from)), this.x(to)];
      if (b <= a) continue;
      g.save();
      g.beginPath();
      g.rect(a, 0, b - a, this.plotHeight);
      g.clip();
      g.beginPath();
      for (let x = a - this.plotHeight; x < b; x += 6) {
        g.moveTo(x, this.plotHeight);
        g.lineTo(x + this.plotHeight, 0);
      }
      g.stroke();
      g.restore();
    }
  }

  /** Times below, and a line up for each. */
  times() {
    const { g, view } = this;
    const steps = [5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400];
    const room = Math.max(1, Math.floor((this.width - LEFT) / (8 * this.font)));
    const step = steps.find((s) => (view.to - view.from) / s <= room) ?? 28800;
    g.fillStyle = css("--soft");
    g.strokeStyle = css("--line");
    g.lineWidth = 1;
    g.textAlign = "center";
    // Round times of the labels: of the day, or since a recording began.
    const { origin } = view;
    for (let at = Math.ceil((view.from + origin) / step) * step - origin; at <= view.to; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      g.beginPath();
      g.moveTo(x, this.plotHeight);
      g.lineTo(x, this.plotHeight + 4);
      g.stroke();
      // Labels at the edges stand a little aside.
      const text = view.label(at);
      const half = g.measureText(text).width / 2;
      if (this.bottom === BOTTOM) g.fillText(text, Math.max(LEFT + half - this.font, Math.min(this.width - half, x)), this.height - 7);
    }
  }

  /** Labels at the left: [height from the top, text]. */
  labels(all) {
    const { g } = this;
    g.fillStyle = css("--soft");
    g.textAlign = "right";
    for (const [y, text] of all) g.fillText(text, LEFT - 6, Math.min(this.plotHeight - 6, Math.max(7, y)));
  }

  /** The selected stretch of time, and of heights if there is one. */
  selection(selection, top = 0, bottom = this.plotHeight) {
    if (!selection) return;
    const { g } = this;
    const [a, b] = [Math.max(LEFT, this.x(selection.from)), Math.min(this.width, this.x(selection.to))];
    if (b < a) return;
    g.strokeStyle = css("--ink");
    g.lineWidth = 1.5;
    g.setLineDash([4, 3]);
    g.strokeRect(a, top + 1, Math.max(2, b - a), bottom - top - 2);
    g.setLineDash([]);
  }
}

/** At most one drawing for each frame of the screen, however many windows come. */
export function coalesced(draw) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      draw();
    });
  };
}
