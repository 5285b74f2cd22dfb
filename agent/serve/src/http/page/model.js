// Sums over several windows. Nothing here draws.

/** Adds times of the same kind: {count, sum, buckets: Map of index to count}. */
export function merge(all) {
  const total = { count: 0, sum: 0, buckets: new Map() };
  for (const times of all) {
    if (!times) continue;
    total.count += times.count;
    total.sum += times.sum;
    for (const [i, n] of times.buckets) total.buckets.set(i, (total.buckets.get(i) ?? 0) + n);
  }
  return total;
}

/** Like `Histogram::quantile` of the agent: the harmonic middle of the bucket with this rank; null without values. */
export function quantile(times, q, edges) {
  if (!times.count) return null;
  const rank = Math.max(1, Math.ceil(q * times.count));
  let seen = 0;
  for (const i of [...times.buckets.keys()].sort((a, b) => a - b)) {
    seen += times.buckets.get(i);
    if (seen < rank) continue;
    if (i === 0) return edges[0];
    if (i >= edges.length) return edges[edges.length - 1];
    return (2 * edges[i - 1] * edges[i]) / (edges[i - 1] + edges[i]);
  }
  return null;
}

/** The row of each bucket in a heat map. Parts of a bucket that a power of ten divides share one. */
export function rowsOf(edges) {
  const width = (a, b) => Math.log(edges[b] / edges[a]);
  const whole = 0.99 * Math.max(...edges.slice(1).map((_, i) => width(i, i + 1)));
  let [row, below] = [0, 0];
  const all = edges.map((_, i) => {
    if (i === 1 || (i && width(below, i - 1) >= whole)) [row, below] = [row + 1, i - 1];
    return row;
  });
  return [...all, row + 1];
}

/** Operations that a choice like "all", "4.2", "4.2/write" or "4.2/write,3" stands for, for each of its parts; none is in two. */
export function layers(window, choice) {
  const parts = choice.split(",");
  const all = parts.map(() => []);
  for (const o of window.ops) all[parts.findIndex((p) => p === "all" || p === o.version || p === `${o.version}/${o.op}`)]?.push(o);
  return all;
}
export const chosen = (window, choice) => layers(window, choice).flat();

/** Every choice with operations in some window. */
export function choices(windows) {
  const all = new Map();
  for (const w of windows) {
    for (const o of w.ops) {
      const key = `${o.version}/${o.op}`;
      all.set(key, (all.get(key) ?? 0) + o.times.sum);
    }
  }
  const versions = [...new Set([...all.keys()].map((k) => k.split("/")[0]))].sort();
  const ops = [...all.entries()].sort((a, b) => b[1] - a[1]).map(([key]) => key);
  return ["all", ...versions, ...ops];
}

/** A sum and a number that may be unknown. */
export const plus = (sum, v) => ((v ?? null) === null ? sum : (sum ?? 0) + v);
/** Adds arrays of numbers; an element that is null in all stays null. */
export function addPhases(all) {
  let sum = null;
  for (const phases of all) {
    if (!phases) continue;
    sum ??= phases.map(() => null);
    phases.forEach((v, i) => (sum[i] = plus(sum[i], v)));
  }
  return sum;
}

/** Windows that lie in [from, to] with at least half of their time. */
export function within(windows, from, to) {
  return windows.filter((w) => {
    const middle = w.at - w.seconds / 2;
    return middle >= from && middle <= to;
  });
}

/** Begin of a window. */
export const begin = (w) => w.at - w.seconds;

/** Bytes that were read and written, as far as counted. */
export function addMoved(row, m) {
  if (m) row.moved = [m.read, m.written].map((n, i) => n + (row.moved?.[i] ?? 0));
}

/** Rows of one kind over several windows: by key, with what `read` finds of each window. */
function rows(windows, read) {
  const all = new Map();
  for (const w of windows) {
    for (const { key, ...found } of read(w)) {
      const row = all.get(key) ?? { key, ops: 0, seconds: null, errors: null, minRtt: null, times: [], at: [] };
      row.ops += found.ops;
      row.seconds = plus(row.seconds, found.seconds);
      row.errors = plus(row.errors, found.errors);
      addMoved(row, found.moved);
      row.minRtt = found.minRtt ?? row.minRtt;
      row.called = found.called ?? row.called;
      if (found.times) row.times.push(found.times);
      row.at.push([w.at, found.ops / w.seconds]);
      all.set(key, row);
    }
  }
  return [...all.values()].sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0) || b.ops - a.ops || (a.key < b.key ? -1 : 1));
}

/** The table of operations, clients or exports over windows, and the time of all rows together. */
export function breakdown(windows, by) {
  const read = {
    op: (w) => w.ops.map((o) => ({ key: `${o.version}/${o.op}`, ops: o.times.count, seconds: o.times.sum, errors: o.errors, times: o.times })),
    client: (w) => w.clients.map((c) => ({ key: c.name, called: c.called, ops: c.ops, seconds: c.seconds, minRtt: c.min_rtt, moved: c.moved })),
    export: (w) => w.exports.map((e) => ({ key: e.name, ops: e.ops, seconds: e.seconds, moved: e.moved })),
  }[by];
  const all = rows(windows, read);
  return { rows: all, seconds: all.reduce((sum, r) => sum + (r.seconds ?? 0), 0) };
}

/** Operations of a choice whose time lies in buckets low to high, by operation; the most first. */
export function inRectangle(windows, choice, low, high) {
  const all = new Map();
  for (const w of windows) {
    for (const o of chosen(w, choice)) {
      let n = 0;
      for (const [i, count] of o.times.buckets) if (i >= low && i <= high) n += count;
      const key = `${o.version}/${o.op}`;
      const row = all.get(key) ?? { key, inside: 0, all: 0 };
      row.inside += n;
      row.all += o.times.count;
      all.set(key, row);
    }
  }
  return [...all.values()].filter((r) => r.inside).sort((a, b) => b.inside - a.inside);
}

/** Stretches of time without a window, between two and to the ends of the axis where these are farther than `near`. */
export function gaps(windows, from, to, near = NaN) {
  const all = [];
  const gap = (a, b, least) => b - a > least && all.push([a, b]);
  windows.forEach((w, i) => (i ? gap(windows[i - 1].at, begin(w), 1.5) : gap(from, begin(w), near)));
  gap(windows[windows.length - 1]?.at ?? from, to, near);
  return all;
}

/** Takes new windows. If the clock was set back, those before are useless. */
export function take(windows, news, keptSeconds) {
  for (const w of news) {
    while (windows.length && windows[windows.length - 1].at >= w.at) windows.pop();
    windows.push(w);
  }
  const last = windows[windows.length - 1]?.at ?? 0;
  while (windows.length && windows[0].at < last - keptSeconds) windows.shift();
}
