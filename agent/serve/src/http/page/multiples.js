// Small pictures of one kind beside each other, with one scale: logs, disks, pools.

import { Parts } from "./charts.js";
import { el, safe } from "./dom.js";
import { HeatMap, joined } from "./heatmap.js";

/** Most figures; further rows are in the table alone. */
const MOST = 12;

/** Keeps a figure for each key, and its plot. */
class Figures {
  constructor(box, Drawer, what) {
    Object.assign(this, { box, Drawer, what, all: new Map() });
  }

  /** Figures of these keys, in their order. */
  of(keys) {
    const shown = keys.slice(0, MOST);
    if (this.box.dataset.keys !== shown.join("\n")) {
      this.box.dataset.keys = shown.join("\n");
      this.all = new Map(shown.map((key) => {
        const canvas = el("canvas", { role: "img", "aria-label": `${this.what(safe(key))} The table below has the numbers.` });
        return [key, { canvas, drawer: new this.Drawer(canvas) }];
      }));
      this.box.replaceChildren(...[...this.all].map(([key, f]) => el("figure", {}, el("figcaption", { title: safe(key) }, safe(key)), f.canvas)));
    }
    return [...this.all].map(([key, f]) => [key, f.drawer]);
  }
}

/** Heat maps of times by key. */
export class HeatMultiples {
  /** `read(window)` gives [key, times] of each row. */
  constructor(box, what, read) {
    this.figures = new Figures(box, HeatMap, what);
    this.read = read;
  }

  prepare(windows, edges) {
    const all = new Map();
    for (const w of windows) {
      for (const [key, times] of this.read(w)) {
        if (!times?.count) continue;
        const found = all.get(key) ?? { sum: 0, by: new Map() };
        found.sum += times.sum;
        found.by.set(w, times);
        all.set(key, found);
      }
    }
    const keys = [...all.keys()].sort((a, b) => all.get(b).sum - all.get(a).sum || (a < b ? -1 : 1));
    this.drawn = this.figures.of(keys);
    return joined(this.drawn.map(([key, heat]) => heat.prepare(windows, (w) => [all.get(key).by.get(w)], edges)));
  }

  draw(view, scale) {
    for (const [, heat] of this.drawn) heat.draw(view, scale);
  }
}

/** The busy part of each pool's threads as an area, the time with all of them busy as a line. */
export class PoolMultiples {
  constructor(box) {
    this.figures = new Figures(box, Parts, (key) => `Thread pool ${key}: area, part of the threads that are busy; line, part of the time with all of them busy.`);
  }

  draw(view, windows) {
    const keys = [...new Set(windows.flatMap((w) => w.pools.filter((p) => p.busy !== null).map((p) => p.pool)))];
    for (const [key, parts] of this.figures.of(keys)) {
      parts.draw(view, windows.map((w) => {
        const p = w.pools.find((x) => x.pool === key);
        const busy = p && p.busy !== null && p.threads ? p.busy / (p.threads * w.seconds) : null;
        return [w, busy, p && p.saturated !== null ? p.saturated / w.seconds : null];
      }));
    }
  }
}
