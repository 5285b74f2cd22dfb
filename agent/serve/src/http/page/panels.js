// The tables beside and below the pictures.

import { bar, el, name, safe, soft, swatch, table } from "./dom.js";
import { phaseColor } from "./color.js";
import { sparkline } from "./charts.js";
import { bytes, clock, digits, percent, time, words } from "./format.js";
import { merge, plus, quantile } from "./model.js";

const MOST_ROWS = 200;
/** Rows of a summary. */
export const TOP = 5;

/** Seconds of windows. */
const span = (windows) => windows.reduce((sum, w) => sum + w.seconds, 0);

/** Phases: name, seconds, share. */
export function phaseTable(names, sums) {
  if (!sums) return soft("Phases are not measured here, or nothing happened.");
  const total = sums.reduce((sum, v) => sum + (v ?? 0), 0);
  const rows = names.map((n, i) => [n, i, sums[i]]).filter(([, , v]) => v !== null);
  return table(["Phase", "Time", "Share"], rows.map(([n, i, v]) => {
    return [el("span", {}, swatch(phaseColor(i)), words(n)), time(v), percent(total ? v / total : 0)];
  }));
}

/** The busiest rows: their `cells`, part of all the time, and rate over time. */
export function ranked(head, rows, total, view, cells) {
  const spark = ({ at }) => () => {
    const canvas = el("canvas", { class: "spark", "aria-hidden": "true" });
    // Drawn once it is in the page and has a size.
    queueMicrotask(() => sparkline(canvas, view, at));
    return canvas;
  };
  const body = rows.slice(0, MOST_ROWS).map((r) => [...cells(r), bar(shareOf(r, total)), spark(r)]);
  // Rows without a thousandth of the time are folded.
  const matter = rows.filter((r) => r.seconds > total / 1000).length;
  const result = el("div", {}, table([...head, "Share of time", "Per second over time"], body, Math.min(10, matter || 10)));
  if (rows.length > MOST_ROWS) result.append(el("p", { class: "soft small" }, `${rows.length - MOST_ROWS} more with less time.`));
  return result;
}
const shareOf = (r, total) => (total && r.seconds !== null ? r.seconds / total : null);

/** Bytes that were read and written. */
export const MOVED = ["Read", "Written"];
export const moved = (r, length) => [0, 1].map((i) => bytes(r.moved && r.moved[i] / length));
/** An address or a number, and its name. */
export const named = (key, called) => (called ? `${key} ${called}` : key);
/** Quantiles of times, as text. */
export const p50p99 = (times, edges) => [0.5, 0.99].map((q) => time(quantile(times, q, edges)));

/** Operations, clients or exports; `filter(key)` is called with the row that was clicked, where rows can be chosen. */
export function byTable({ rows, seconds }, by, windows, view, edges, filter) {
  if (!rows.length) return soft(windows.length ? "Nothing happened, or it is not measured here." : "No data yet.");
  const length = span(windows) || 1;
  const head = { op: ["Operation", "Per second", "p50", "p99", "Errors/s"], client: ["Client", "Per second", "Mean", "Round trip", ...MOVED], export: ["Export", "Per second", "Mean", ...MOVED] }[by];
  return ranked(head, rows, seconds, view, (r) => {
    const mean = r.seconds !== null && r.ops ? time(r.seconds / r.ops) : "-";
    const first = filter
      ? { class: "name", content: el("button", { "data-key": r.key, onclick: () => filter(r.key) }, safe(r.key)) }
      : name(named(r.key, r.called));
    const times = by === "op" ? merge(r.times) : null;
    const middle = {
      op: () => [...p50p99(times, edges), digits(r.errors && r.errors / length)],
      client: () => [mean, time(r.minRtt), ...moved(r, length)],
      export: () => [mean, ...moved(r, length)],
    }[by]();
    return [first, digits(r.ops / length), ...middle];
  });
}

/** The clients or exports with the most time. */
export function topTable({ rows, seconds }, title, windows) {
  const length = span(windows) || 1;
  return rows.length ? table([title, "Ops/s", ...MOVED, "Time"], rows.slice(0, TOP).map((r) =>
    [name(named(r.key, r.called)), digits(r.ops / length), ...moved(r, length), percent(shareOf(r, seconds))])) : soft(`${title}: none in this time, or not measured.`);
}

/** Headline figures: of the windows, and of the last one. */
export function figures(windows, times, edges) {
  const of = (some, times) => {
    const length = span(some);
    const sum = (list, value) => some.flatMap((w) => w[list]).reduce((all, x) => plus(all, value(x)), null);
    const by = (v) => (v === null ? null : v / length);
    const threads = some[some.length - 1]?.pools.reduce((all, p) => all + p.threads, 0);
    const byteRate = (way) => bytes(by(sum("exports", (e) => e.moved?.[way]) ?? sum("clients", (c) => c.moved?.[way])));
    return [digits(length ? times.count / length : null), byteRate("read"), byteRate("written"), time(quantile(times, 0.99, edges)),
      threads ? `${digits(by(sum("pools", (p) => p.busy)))} of ${threads}` : "-"];
  };
  const last = windows.slice(-1);
  const [all, latest] = [of(windows, times(windows)), of(last, times(last))];
  const coverage = Object.entries(last[0]?.coverage ?? {}).map(([version, c]) => `NFSv${version} ${percent(c)}`).join(", ");
  const box = (title, ...values) => el("div", {}, el("dt", {}, title), el("dd", {}, ...values));
  return [
    ...["Operations/s", "Read", "Written", "p99", "Threads busy"].map((title, i) => box(title, all[i], el("span", { class: "soft small" }, ` last ${latest[i]}`))),
    box("Operations measured", el("span", { class: "small" }, coverage || "-")),
  ];
}

/** Operations in a rectangle of the heat map. */
export function insideTable(rows, selection, edges, label) {
  const above = selection.low ? edges[selection.low - 1] : 0;
  const upTo = edges[selection.high];
  const bounds = `${label(selection.from)} to ${label(selection.to)}, ${upTo === undefined ? `longer than ${time(above)}` : `${time(above)} to ${time(upTo)}`}`;
  const total = rows.reduce((sum, r) => sum + r.inside, 0);
  return el("div", {},
    el("p", {}, `Selected: ${bounds}: ${total} operations.`),
    rows.length ? table(["Operation", "Selected", "Share of this operation's calls in that time", "Share of the selected"],
      rows.map((r) => [name(r.key), String(r.inside), percent(r.inside / r.all), bar(r.inside / total)])) : null);
}

/** The heat map's numbers, bucket by bucket; where there are several layers, those of each by its name. */
export function columnTable(layers, names, edges) {
  const times = merge(layers);
  const several = layers.length > 1 ? layers : [];
  return table(["Longer than", "Up to", "Operations", "Share", ...several.map((_, k) => safe(names[k]))],
    [...times.buckets].sort((a, b) => b[0] - a[0]).map(([i, n]) => [i ? time(edges[i - 1]) : "0 s", i < edges.length ? time(edges[i]) : "no limit",
      String(n), percent(n / times.count), ...several.map((l) => String(l.buckets.get(i) ?? 0))]), Infinity);
}

function together(windows, list, key, times) {
  const all = new Map();
  for (const w of windows) {
    for (const item of w[list]) {
      const k = key(item);
      const row = all.get(k) ?? { key: k, bytes: null };
      for (const [field, t] of Object.entries(times(item))) if (t) (row[field] ??= []).push(t);
      row.bytes = plus(row.bytes, item.bytes);
      all.set(k, row);
    }
  }
  return [...all.values()];
}

export const logKey = (l) => `${l.fs} ${l.volume}`;
export const diskKey = (d) => `${d.device} ${d.op}`;

export function logTable(windows, edges) {
  const rows = together(windows, "logs", logKey, (l) => ({ waits: l.waits, writes: l.writes }));
  if (!rows.length) return soft("No journal or intent log was used, or none is measured here.");
  const length = span(windows) || 1;
  return table(["Log", "Waits/s", "Wait p50", "Wait p99", "Writes/s", "Write p99"], rows.map((r) => {
    const [waits, writes] = [merge(r.waits ?? []), merge(r.writes ?? [])];
    return [name(r.key), r.waits ? digits(waits.count / length) : "-", ...p50p99(waits, edges),
      r.writes ? digits(writes.count / length) : "-", time(quantile(writes, 0.99, edges))];
  }));
}

export function diskTable(windows, edges) {
  const rows = together(windows, "disks", diskKey, (d) => ({ times: d.times }));
  if (!rows.length) return soft("No block device completed a request, or none is measured here.");
  const length = span(windows) || 1;
  return table(["Disk", "Requests/s", "p50", "p99", "Bytes"], rows.map((r) => {
    const times = merge(r.times);
    return [name(r.key), digits(times.count / length), ...p50p99(times, edges), bytes(r.bytes && r.bytes / length)];
  }));
}

export function poolTable(windows, edges) {
  const all = new Map();
  for (const w of windows) {
    for (const p of w.pools) {
      const row = all.get(p.pool) ?? { threads: 0, threadSeconds: 0, busy: null, saturated: null, queue: [], seconds: 0 };
      row.threads = p.threads;
      row.threadSeconds += p.threads * w.seconds;
      row.seconds += w.seconds;
      row.busy = plus(row.busy, p.busy);
      row.saturated = plus(row.saturated, p.saturated);
      if (p.queue) row.queue.push(p.queue);
      all.set(p.pool, row);
    }
  }
  if (!all.size) return soft("No thread pool is measured here.");
  return table(["Pool", "Threads", "Busy", "Time with all busy", "Wait p50", "Wait p99"], [...all].map(([pool, r]) => {
    const queue = merge(r.queue);
    const busy = r.busy === null || !r.threadSeconds ? null : r.busy / r.threadSeconds;
    return [name(pool), digits(r.threads), busy === null ? "-" : bar(busy),
      r.saturated === null ? "-" : percent(r.saturated / r.seconds), ...p50p99(queue, edges)];
  }));
}

/** Findings with a break-down by file, the operations of some, and all findings with a break-down. */
const OF_FILES = ["lock_contention", "unknown_waits", "small_sync_writes"];
const OPS = { small_sync_writes: ["write", "commit"], chatty_client: ["getattr", "lookup", "access", "readlink", "read"] };
const WHO = [...OF_FILES, "chatty_client", "slow_intent_log", "slow_disk", "write_throttle", "thread_starvation", "cpu_saturation"];

/** Findings as cards, of `from` to `to`. `seen` are the kinds in windows of that time. `counting.count(kind, by, ops)` starts that
 * break-down, whose first rows are in `counting.brief`. */
export function findingCards(report, { from, to, live, seen }, counting) {
  const who = (kind) => WHO.includes(kind) && el("div", { class: "counts" }, el("button", { "data-key": kind, onclick: () =>
    counting.count(kind, ["client", "export", OF_FILES.includes(kind) ? "file" : "op"], OPS[kind] ?? []) },
  counting.running && kind === counting.kind ? "Stop counting" : "Show top clients, files and operations"), kind === counting.kind ? counting.brief : null);
  const card = ({ finding, began }, style, part, when, button) => el("article", { class: style },
    el("strong", {}, words(finding.kind)),
    el("span", { class: "soft" }, ` ${part}, ${when}`),
    el("p", {}, safe(finding.summary)),
    list(finding.kind + began, "Evidence", finding.evidence.map((x) => x.text)),
    list(finding.kind + began, "What would change it", finding.advice),
    button || null);
  const active = report.active.filter((e) => live || e.began <= to);
  const past = report.history.filter((e) => e.began <= to && e.ended >= from);
  const cards = [
    ...active.map((e) => card(e, "card", percent(e.finding.share), `since ${clock(e.began)}`, who(e.finding.kind))),
    ...past.map((e) => card(e, "card past", `up to ${percent(e.worst_share)}`, `${clock(e.began)} to ${clock(e.ended)}`)),
  ];
  if (live && !active.length) cards.unshift(health(report.last_window));
  const lost = seen.filter((k) => ![...active, ...past].some((e) => e.finding.kind === k));
  if (lost.length) cards.push(soft(`Not kept any more: the evidence of ${lost.map(words).join(", ")}.`));
  return cards.length ? cards : [soft("No finding is known of this time.")];
}

function health(last) {
  if (!last) return soft("No ten seconds have been evaluated yet, or operations are not timed.");
  const text = { healthy: last.reason ? `Healthy: ${last.reason}.` : "Healthy: no bottleneck found in the last ten seconds.", unknown: `No finding, but ${last.reason}.` }[last.verdict]
    ?? "The last ten seconds have a bottleneck; it becomes a finding when the next ten have it, too.";
  const but = last.verdict === "healthy" ? (last.unseen ?? []).map((t) => ` But ${t}.`).join("") : "";
  return el("article", { class: last.verdict === "healthy" ? "card good" : "card" }, safe(text + but));
}

function list(of, title, items) {
  if (!items.length) return null;
  const key = `${of} ${title}`;
  return el("details", { "data-key": key }, el("summary", { "data-key": `${key} summary` }, title), el("ul", {}, ...items.map((t) => el("li", {}, safe(t)))));
}

export function probeTable(probes) {
  return table(["Probe", "State", "Measures", "Reason"], probes.map((p) => [
    name(`${p.probe}/${p.program}`), { class: p.state, content: p.state }, { class: "wide", content: p.gives },
    { class: "wide", content: [p.reason, p.fix].filter(Boolean).map(safe).join("; ") || "" }]));
}

export function slowTable(ops) {
  if (!ops.length) return soft("None in this time.");
  return table(["Time", "Client", "Version", "Operation", "Duration", "Most of it", "Bytes", "Inode", "Export"], ops.slice(0, MOST_ROWS).map((o) => {
    const phases = Object.entries(o.phases_seconds ?? {}).filter(([, v]) => v).sort((a, b) => b[1] - a[1]);
    const most = phases.length ? `${words(phases[0][0])} ${percent(phases[0][1] / o.duration_seconds)}` : "-";
    return [`${clock(o.at)}${o.time.slice(19, 23)}`, name(named(o.client ?? "-", o.client_name)), o.version, o.op, time(o.duration_seconds), most, digits(o.bytes), String(o.inode ?? "-"), name(o.path ?? o.export ?? "-")];
  }));
}
