// The pictures and tables of one server over one stretch of time. Two of them stand side by side where two recordings are compared.

import { LEFT } from "./axis.js";
import { Stack } from "./charts.js";
import { MOST_OPS } from "./address.js";
import { css, ramp } from "./color.js";
import { $, el, replace, safe, soft, swatch } from "./dom.js";
import { digits, percent, time, words } from "./format.js";
import { HeatMap, joined } from "./heatmap.js";
import * as model from "./model.js";
import { HeatMultiples, PoolMultiples } from "./multiples.js";
import * as panels from "./panels.js";

/** The pane of the document a second time, with ids of its own. Made before anything is drawn into the first. */
export function twinOf(pane, suffix) {
  const twin = pane.cloneNode(true);
  for (const e of [twin, ...twin.querySelectorAll("*")]) {
    if (e.id) e.id += suffix;
    for (const name of ["aria-labelledby", "aria-describedby"]) {
      if (e.hasAttribute(name)) e.setAttribute(name, e.getAttribute(name) + suffix);
    }
  }
  return twin;
}

export class Pane {
  /** `act` has select(rectangle), set(change), steady() before a column is chosen, and draw(). */
  constructor(suffix, act) {
    this.id = (name) => $(name + suffix);
    this.act = act;
    this.heat = new HeatMap(this.id("heat"), { pick: (s) => s && act.select(s), hover: (cell, place) => this.tip(cell, place) });
    this.heat.onRubber = () => this.heat.draw(this.view, this.scales.heat);
    this.phases = new Stack(this.id("phases"), "threads");
    this.requests = new Stack(this.id("requests"), "requests");
    this.logs = new HeatMultiples(this.id("log-charts"), (key) => `Heat map of waits for the log of ${key}.`,
      (w) => w.logs.map((l) => [panels.logKey(l), l.waits ?? l.writes]));
    this.disks = new HeatMultiples(this.id("disk-charts"), (key) => `Heat map of requests to ${key}.`, (w) => w.disks.map((d) => [panels.diskKey(d), d.times]));
    this.pools = new PoolMultiples(this.id("pool-charts"));
    this.id("scale").addEventListener("change", (e) => act.set({ scale: e.target.value }));
    this.id("op").addEventListener("change", (e) => act.set({ op: e.target.value }));
    this.id("also").addEventListener("change", (e) => act.set({ op: [...this.parts.filter((p) => p !== "all"), e.target.value].join() }));
    this.tabs = [...this.id("by-tabs").querySelectorAll("[data-by]")];
    for (const b of this.tabs) b.addEventListener("click", () => act.set({ by: b.dataset.by }));
    this.id("heat").addEventListener("keydown", (e) => this.key(e));
  }

  key(e) {
    const list = this.id("op");
    const other = (step) => list.options[(list.selectedIndex + step + list.options.length) % list.options.length]?.value;
    const act = {
      ArrowLeft: () => this.move(-1), ArrowRight: () => this.move(1),
      "[": () => this.act.set({ op: other(-1) }), "]": () => this.act.set({ op: other(1) }),
      Enter: () => {
        const column = this.heat.columns.find((c) => c.window.at === this.heat.cursor);
        if (column) this.act.select({ from: model.begin(column.window), to: column.window.at });
      },
    }[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  }

  move(step) {
    // A column that scrolls away cannot be read.
    this.act.steady();
    this.heat.move(step);
    this.act.draw();
  }

  /** Takes the windows to draw, and returns the scales that they need. */
  prepare(view, state) {
    Object.assign(this, { view, state });
    const { shown, edges } = view;
    const perSecond = (all, seconds) => all?.map((x) => (x === null ? null : x / seconds)) ?? null;
    this.parts = state.op.split(",");
    this.opsOf = (w) => model.chosen(w, state.op);
    this.layersOf = (windows) => this.parts.map((_, k) => model.merge(windows.flatMap((w) => model.layers(w, state.op)[k].map((o) => o.times))));
    this.chosen = view.selection ? model.within(shown, view.selection.from, view.selection.to) : shown;
    return {
      heat: this.heat.prepare(shown, (w) => this.layersOf([w]), edges),
      phases: this.phases.prepare(shown, (w) => perSecond(model.addPhases(this.opsOf(w).map((o) => o.phases)), w.seconds)),
      requests: this.requests.prepare(shown, (w) => perSecond(model.addPhases(w.rpc.map((r) => r.phases)), w.seconds)),
      logs: this.logs.prepare(shown, edges),
      disks: this.disks.prepare(shown, edges),
    };
  }

  /** Scales that fit all of these. */
  static together(all) {
    const most = (key) => Math.max(...all.map((s) => s[key]));
    const one = (key) => joined(all.map((s) => s[key]));
    return { heat: one("heat"), phases: most("phases"), requests: most("requests"), logs: one("logs"), disks: one("disks") };
  }

  /** `options` are the operations that can be chosen. */
  draw(scales, options) {
    const { view, state, chosen } = this;
    this.scales = scales;
    this.choices(options);
    this.layers = this.layersOf(chosen);
    this.times = model.merge(this.layers);
    const everything = (windows) => (windows === chosen && state.op === "all" ? this.times : model.merge(windows.flatMap((w) => w.ops.map((o) => o.times))));
    replace(this.id("figures"), ...panels.figures(chosen, everything, view.edges));
    this.strip();
    this.heat.draw(view, scales.heat);
    replace(this.id("key"), ...this.heat.key.map(([color, rate]) => el("span", {}, swatch(color), `${digits(rate)}/s`)));
    replace(this.id("top"), ...["client", "export"].map((by) => panels.topTable(model.breakdown(chosen, by), `Top ${by}s`, chosen)));
    this.summary();
    this.phases.draw(view, scales.phases);
    this.requests.draw(view, scales.requests);
    replace(this.id("phase-table"), panels.phaseTable(view.phases, model.addPhases(chosen.flatMap((w) => this.opsOf(w).map((o) => o.phases)))));
    replace(this.id("request-table"), panels.phaseTable(view.rpcPhases, model.addPhases(chosen.flatMap((w) => w.rpc.map((r) => r.phases)))));
    const filter = state.by === "op" ? (key) => this.act.set({ op: key }) : null;
    replace(this.id("by"), panels.byTable(model.breakdown(chosen, state.by), state.by, chosen, view, view.edges, filter));
    this.logs.draw(view, scales.logs);
    this.disks.draw(view, scales.disks);
    this.pools.draw(view, view.shown);
    replace(this.id("logs"), panels.logTable(chosen, view.edges));
    replace(this.id("disks"), panels.diskTable(chosen, view.edges));
    replace(this.id("pools"), panels.poolTable(chosen, view.edges));
  }

  choices(options) {
    const { parts } = this;
    const name = (o) => (o === "all" ? "all operations" : safe(o.includes("/") ? o : `all of ${o}`));
    const fill = (list, all, value) => {
      if ([...list.options].map((o) => o.value).join() !== all.join()) list.replaceChildren(...all.map((o) => el("option", { value: o }, o ? name(o) : "and ...")));
      list.value = value;
    };
    fill(this.id("op"), options, parts[0]);
    const also = this.id("also");
    also.disabled = parts.length >= MOST_OPS || parts[0] === "all";
    fill(also, ["", ...options.filter((o) => o !== "all" && !parts.includes(o))], "");
    // Colours of the operations, and a button to remove each.
    replace(this.id("legend"), ...(parts.length > 1 ? parts : []).map((p, k) => {
      const color = `rgb(${ramp(0.8, k).join(" ")})`;
      return el("button", { "data-key": p, "aria-label": `Without ${name(p)}`, onclick: () => this.act.set({ op: parts.filter((o) => o !== p).join() }) },
        swatch(color), `${name(p)} \u00d7`);
    }));
    this.id("scale").value = this.state.scale;
    for (const b of this.tabs) b.setAttribute("aria-pressed", String(b.dataset.by === this.state.by));
  }

  summary() {
    const { chosen, view, layers, times } = this;
    const seconds = chosen.reduce((sum, w) => sum + w.seconds, 0);
    const line = this.id("summary");
    line.textContent = times.count
      ? `${digits(times.count / seconds)}/s, median ${time(model.quantile(times, 0.5, view.edges))}, p99 ${time(model.quantile(times, 0.99, view.edges))}`
      : chosen.length ? "no operations" : "no data";
    line.dataset.count = times.count;
    const s = view.selection;
    const column = this.heat.columns.find((c) => c.window.at === this.heat.cursor);
    replace(this.id("column"), panels.columnTable(s || !column ? layers : column.layers, this.parts, view.edges));
    const inside = s && s.low !== undefined ? [panels.insideTable(model.inRectangle(chosen, this.state.op, s.low, s.high), s, view.edges, view.label)] : [];
    replace(this.id("inside"), ...inside);
  }

  /** One row for each finding that was active: when, and the share it explains. */
  strip() {
    const { view } = this;
    const box = this.id("strip");
    const kinds = [...new Set(view.shown.flatMap((w) => Object.keys(w.findings)))].sort();
    const key = kinds.join() || `${!!view.recording}`;
    if (box.dataset.key !== key) {
      box.dataset.key = key;
      box.replaceChildren(...kinds.map((k) => el("div", { class: "stripe" }, el("span", { class: "small" }, words(k)),
        el("canvas", { role: "img", "aria-label": `when ${words(k)} was active` }))));
      if (!kinds.length && view.recording) box.append(soft("No finding was active in this recording."));
    }
    kinds.forEach((k, i) => {
      const canvas = box.children[i].querySelector("canvas");
      const [w, h] = [canvas.clientWidth, canvas.clientHeight];
      [canvas.width, canvas.height] = [w, h];
      const g = canvas.getContext("2d");
      // The time axis is that of the heat map.
      const x = (at) => LEFT + ((at - view.from) / (view.to - view.from)) * (w - LEFT - 2);
      g.fillStyle = css("--line");
      g.fillRect(LEFT, h - 1, w, 1);
      g.fillStyle = css("--warn");
      let worst = 0;
      for (const window of view.shown) {
        const share = window.findings[k];
        if (share === undefined) continue;
        worst = Math.max(worst, share);
        const a = Math.max(LEFT, x(model.begin(window)));
        g.fillRect(a, h * (1 - share), Math.max(1, x(window.at) - a + 0.4), h * share);
      }
      box.children[i].firstChild.textContent = `${words(k)}, up to ${percent(worst)}`;
    });
  }

  tip(cell, place) {
    const tip = this.id("tip");
    tip.hidden = !cell;
    if (!cell) return;
    const limit = Number.isFinite(cell.upTo) ? `${time(cell.above)} to ${time(cell.upTo)}` : `longer than ${time(cell.above)}`;
    const { counts } = cell;
    const each = counts.length > 1 ? `: ${this.parts.map((p, k) => `${safe(p)} ${counts[k]}`).join(", ")}` : "";
    tip.textContent = `${this.view.label(cell.window.at)}  ${limit}: ${counts.reduce((a, b) => a + b)} of ${cell.all} operations in ${digits(cell.window.seconds)} s${each}`;
    const room = this.id("heat").clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(LEFT, Math.min(room, place[0] + 12))}px`;
    tip.style.top = `${Math.max(0, place[1] - 30)}px`;
  }
}
