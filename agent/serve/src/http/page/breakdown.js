// Break-downs on demand: the kernel counts by the dimensions wanted, and only while this stream is read.

import { DIMENSIONS } from "./address.js";
import { $, el, name, replace, safe, soft, table } from "./dom.js";
import { digits, percent, time } from "./format.js";
import { addMoved, merge } from "./model.js";
import { MOVED, TOP, moved, named, p50p99, ranked } from "./panels.js";
import { Stream } from "./stream.js";

/** Rows that are kept over all seconds; older seconds go first. */
const MOST_KEPT = 60000;

class Breakdown extends Stream {
  seconds = [];
  rows = 0;
  header = null;
  by = [];

  start(by, where, paths, edges) {
    Object.assign(this, { seconds: [], rows: 0, header: null, by: [...by], edges });
    const query = new URLSearchParams([["by", by.join()], ...where.map(([d, v]) => ["where", `${d}:${v}`])]);
    if (paths && by.includes("file")) query.set("paths", "true");
    this.read(`/breakdown?${query}`);
  }

  times({ count, sum_seconds, buckets, moved }) {
    const at = (edge) => (edge === null ? this.edges.length : this.edges.findIndex((e) => e >= edge * 0.9999));
    return { count, sum: sum_seconds, moved, buckets: buckets.map(([edge, n]) => [at(edge), n]) };
  }

  take(second) {
    if (second.header) this.header = second.header;
    if (!second.rows) return;
    const rows = second.rows.map((r) => ({ key: this.by.map((d) => r[d]), times: this.times(r), path: r.path, why: r.no_path, called: this.by.map((d) => r[`${d}_name`]) }));
    this.seconds.push({ ...second, rows, other: second.other ? this.times(second.other) : null });
    this.rows += rows.length + 1;
    while (this.rows > MOST_KEPT) this.rows -= this.seconds.shift().rows.length + 1;
  }

  /** Rows over the seconds that end in a stretch of time, those with the most time first. */
  within(from, to) {
    const seconds = this.seconds.filter((s) => s.at > from && s.at <= to + 0.5);
    const all = new Map();
    const add = ({ key, times, path, why, called }, s) => {
      const id = JSON.stringify(key);
      const row = all.get(id) ?? { key, times: [], at: [] };
      row.times.push(times);
      addMoved(row, times.moved);
      row.at.push([s.at, times.count / s.seconds]);
      // Latest path: files are renamed.
      if (path || why) Object.assign(row, { path, why });
      if (called?.some(Boolean)) row.called = called;
      all.set(id, row);
    };
    for (const s of seconds) {
      for (const r of s.rows) add(r, s);
      if (s.other?.count) add({ key: null, times: s.other }, s);
    }
    const one = (r, times) => ({ ...r, times, seconds: times.sum });
    const rows = [...all.values()].map((r) => one(r, merge(r.times))).sort((a, b) => (a.key === null) - (b.key === null) || b.times.sum - a.times.sum || b.times.count - a.times.count);
    const sum = (key) => seconds.reduce((all, s) => all + s[key], 0);
    return { rows, seconds: sum("seconds"), evicted: sum("evicted"), cost: sum("cost_seconds") };
  }
}

/** The first rows with the most time. */
function topRows(by, rows, total, seconds) {
  return table([...by, "Ops/s", ...MOVED, "Time"], rows.slice(0, TOP).map((r) => [
    ...by.map((_, i) => name(r.key ? r.path && by[i] === "file" ? r.path : named(r.key[i] ?? "unknown", r.called?.[i]) : i ? "" : "all others")),
    digits(r.times.count / seconds), ...moved(r, seconds), percent(r.times.sum / total)]));
}

/** Rows added up by their first dimension. */
function totals(rows) {
  const all = new Map();
  for (const { key, called, times, moved } of rows) {
    const row = all.get(key?.[0]) ?? { key: key && [key[0]], called, times: [] };
    row.times.push(times);
    if (moved) row.moved = moved.map((n, i) => n + (row.moved?.[i] ?? 0));
    all.set(key?.[0], row);
  }
  return [...all.values()].map((r) => ({ ...r, times: merge(r.times) })).sort((a, b) => b.times.sum - a.times.sum);
}

/** Rows with bars; `filter(dimension, value)` is called with the name that was clicked. */
function downTable(by, { rows, seconds }, view, edges, filter) {
  if (!rows.length) return soft("No operation so far.");
  const total = rows.reduce((sum, r) => sum + r.times.sum, 0);
  /** Why files have no path, and how many. */
  const whys = new Map();
  const head = [...by, "Per second", "Mean", "p50", "p99", ...MOVED];
  const result = ranked(head, rows, total, view, (r) => {
    const names = by.map((dimension, i) => {
      if (r.key === null) return name(i ? "" : "all others");
      const value = r.key[i];
      if ((value ?? null) === null) return name("unknown");
      const [path, why] = dimension === "file" ? [r.path, r.why] : [];
      const text = safe(path ?? named(value, r.called?.[i]));
      if (why) whys.set(why, (whys.get(why) ?? 0) + 1);
      return { class: "name", title: path || why ? `${safe(value)}: ${safe(path ?? why)}` : text, content: el("button", { "data-key": JSON.stringify([dimension, r.key]), onclick: () => filter(dimension, String(value)) }, text) };
    });
    return [...names, { title: `${r.times.count} operations`, content: digits(r.times.count / seconds) }, time(r.times.sum / r.times.count), ...p50p99(r.times, edges), ...moved(r, seconds)];
  });
  for (const [why, n] of whys) result.append(el("p", { class: "soft small" }, `${n} without a path: ${safe(why)}.`));
  return result;
}

/** The panel: the query, its cost, and the table. Nothing is counted before the user starts it. */
export class BreakdownPanel {
  constructor(state, act) {
    /** Kind of the finding that has started it, and the first rows for its card. */
    Object.assign(this, { state, act, kind: null, brief: el("div", { class: "small brief" }) });
    this.counts = new Breakdown({ changed: () => act.draw(), ended: (reason) => { this.say(safe(reason)); act.draw(); } });
    $("down-run").addEventListener("click", () => (this.running ? this.stop() : this.start()));
    $("down-by").append(...DIMENSIONS.map((dimension) => el("button", { "data-dimension": dimension, onclick: () => {
      const rest = state.down.filter((d) => d !== dimension);
      const down = rest.length < state.down.length ? rest : [...rest, dimension];
      if (down.length) this.change({ down });
    } }, dimension)), el("button", { id: "down-paths", onclick: () => {
      const down = state.down.includes("file") ? state.down : [...state.down, "file"];
      this.change({ paths: !this.named(), down });
    } }, "paths"));
  }

  /** True if files have their paths. */
  named() {
    return this.state.paths && this.state.down.includes("file");
  }

  say(text) {
    if ($("down-note").textContent !== text) $("down-note").textContent = text;
  }

  get running() {
    return this.counts.running;
  }

  /** The query as a text. */
  get query() {
    const { down, where, paths } = this.state;
    return JSON.stringify([down, where, paths]);
  }

  /** Counts who is behind a finding, or ends that. */
  count(kind, by, ops) {
    if (this.running && this.kind === kind) return this.stop();
    this.kind = kind;
    this.act.set({ down: by, where: ops.map((op) => ["op", op]) });
    this.start();
  }

  start() {
    this.say("The kernel begins to count.");
    this.counts.start(this.state.down, this.state.where, this.state.paths, this.state.edges);
    this.act.draw();
  }

  stop() {
    if (!this.counts.running) return;
    this.counts.stop();
    this.say("The kernel counts nothing any more. What it has counted stays here.");
    this.act.draw();
  }

  change(change) {
    this.act.set(change);
    if (this.counts.running) this.start();
  }

  /** The clicked value alone, by the dimensions left. */
  only(dimension, value) {
    const where = [...this.state.where.filter(([d]) => d !== dimension), [dimension, value]];
    const rest = this.state.down.filter((d) => d !== dimension);
    const next = ["op", "client", "export", "version"].find((d) => !where.some(([known]) => known === d));
    this.change({ where, down: rest.length ? rest : [next ?? dimension] });
  }

  draw(view) {
    const { state, counts } = this;
    for (const b of $("down-by").children) b.setAttribute("aria-pressed", String(b.id ? this.named() : state.down.includes(b.dataset.dimension)));
    replace($("down-where"), ...state.where.map(([dimension, value]) => el("button", {
      "data-key": `${dimension} ${value}`, "aria-label": `Without the filter ${dimension} ${safe(value)}`,
      onclick: () => this.change({ where: state.where.filter(([d, v]) => d !== dimension || v !== value) }),
    }, `${dimension} ${safe(value)} \u00d7`)));
    $("down-run").textContent = counts.running ? "Stop" : "Start";
    $("down-run").setAttribute("aria-pressed", String(counts.running));
    if (!counts.running && !counts.seconds.length) return replace(this.brief, soft($("down-note").textContent));
    const { from, to } = state.selection ?? view;
    const found = counts.within(from, state.frozen === null && !state.selection ? Infinity : to);
    if (counts.running && counts.seconds.length) {
      const parts = [`Counted for ${digits(found.seconds)} s.`];
      parts.push(`It costs the server ${time(found.cost / found.seconds)} of CPU time a second and ${digits(counts.header.kernel_bytes / 1e6)} MB of memory, until it is stopped.`);
      if (found.evicted) parts.push(`${digits(found.evicted)} operations found no room in the kernel's table.`);
      this.say(parts.join(" "));
    }
    const total = found.rows.reduce((sum, r) => sum + r.times.sum, 0);
    const top = (by, rows) => (rows.length ? [topRows(by, rows, total, found.seconds)] : []);
    const sums = () => (counts.by.length > 1 ? top([counts.by[0]], totals(found.rows)) : []);
    replace($("down-totals"), ...sums());
    replace(this.brief, soft($("down-note").textContent), ...sums(), ...top(counts.by, found.rows));
    replace($("down"), downTable(counts.by, found, view, state.edges, (dimension, value) => this.only(dimension, value)));
  }
}
