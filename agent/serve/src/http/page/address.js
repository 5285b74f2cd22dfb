// The view: its state is behind the `#` of the address, so that a link shows the same view to others.

export const RANGES = [60, 300, 900, 3600, 21600, 86400];
/** Operations of one heat map, each with a colour of its own. */
export const MOST_OPS = 4;
/** Scales of the colours of a heat map. */
export const SCALES = ["log", "linear", "quantile"];
export const DIMENSIONS = ["client", "op", "export", "version", "user", "file"];

export const state = {
  windows: [], since: null, replay: false, edges: [], phases: [], rpcPhases: [], report: null, gone: null,
  /** `op`: "all", or up to four of "4.2" and "4.2/write" with commas between. */
  range: 300, op: "all", by: "op", scale: "log", selection: null, frozen: null,
  /** Length of the axis when it was stopped; null for the whole range. */
  frozenLength: null,
  /** Answer from the agent's disk: {from, to, windows, why}. */
  past: null,
  /** Names of the recordings shown in place of the present: of one, or of two side by side. */
  show: [],
  /** Part of the recordings that is shown, in seconds since they began; null for all. */
  zoom: null,
  /** Dimensions of the break-down on demand, and its filters: [dimension, value]. */
  down: ["client"], where: [],
  /** True if files have their paths there. */
  paths: false,
  /** Slow operations: their least duration, and true while they are watched. */
  over: "10ms", watch: false,
};

export function readAddress() {
  const p = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (p.has(name) && Number.isFinite(Number(p.get(name))) ? Number(p.get(name)) : undefined);
  state.range = RANGES.includes(number("range")) ? number("range") : 300;
  state.op = [...new Set((p.get("op") ?? "all").split(","))].slice(0, MOST_OPS).join();
  state.by = ["op", "client", "export"].includes(p.get("by")) ? p.get("by") : "op";
  state.scale = SCALES.includes(p.get("scale")) ? p.get("scale") : "log";
  const [from, to, low, high] = ["from", "to", "low", "high"].map(number);
  state.selection = from !== undefined && to > from ? { from, to, low, high } : null;
  state.frozen = number("at") ?? null;
  state.frozenLength = null;
  state.show = [p.get("show"), p.get("beside")].filter(Boolean);
  const zoom = (p.get("zoom") ?? "").split("_").map(Number);
  state.zoom = zoom.length === 2 && zoom[0] >= 0 && zoom[1] > zoom[0] ? zoom : null;
  const down = (p.get("down") ?? "").split(",").filter((d) => DIMENSIONS.includes(d));
  state.down = down.length ? [...new Set(down)] : ["client"];
  state.paths = p.has("paths");
  state.over = /^(1s|10{0,2}ms)$/.test(p.get("over")) ? p.get("over") : "10ms";
  state.watch = p.has("watch");
  state.where = p.getAll("where").map((w) => [w.slice(0, w.indexOf(":")), w.slice(w.indexOf(":") + 1)]).filter(([d]) => DIMENSIONS.includes(d));
}

export function writeAddress() {
  const p = new URLSearchParams();
  if (state.range !== 300) p.set("range", state.range);
  if (state.op !== "all") p.set("op", state.op);
  if (state.by !== "op") p.set("by", state.by);
  if (state.scale !== "log") p.set("scale", state.scale);
  for (const name of ["from", "to", "low", "high"]) if (state.selection?.[name] !== undefined) p.set(name, Number(state.selection[name].toFixed(2)));
  if (state.frozen !== null) p.set("at", Number(state.frozen.toFixed(2)));
  ["show", "beside"].forEach((key, i) => state.show[i] && p.set(key, state.show[i]));
  if (state.zoom) p.set("zoom", state.zoom.map((s) => Number(s.toFixed(2))).join("_"));
  if (state.down.join() !== "client") p.set("down", state.down.join());
  if (state.paths) p.set("paths", "");
  if (state.over !== "10ms") p.set("over", state.over);
  if (state.watch) p.set("watch", "");
  for (const [dimension, value] of state.where) p.append("where", `${dimension}:${value}`);
  // Back goes to the view before.
  if (`#${p}` !== (location.hash || "#")) history.pushState(null, "", `#${p}`);
}
