// The page: asks the agent, keeps windows, and draws what the address says.

import { readAddress, state, writeAddress } from "./address.js";
import { coalesced } from "./axis.js";
import { BreakdownPanel } from "./breakdown.js";
import { onScheme } from "./color.js";
import { $, el, replace, safe } from "./dom.js";
import { clock, elapsed } from "./format.js";
import * as model from "./model.js";
import { Pane, twinOf } from "./pane.js";
import * as panels from "./panels.js";
import { Shelf } from "./recordings.js";
import { Scatter, SlowWatch } from "./slow.js";

const KEPT = 900;
const INTERVAL = 1000;
const RETRY = 2000;
/** The agent answers within 30 s, or says that it is busy. */
const PATIENCE = 40000;
/** Shortest axis, in seconds. */
const SHORTEST = 30;
/** Windows of one picture from the agent's disk. */
const COLUMNS = 300;

function set(change) {
  Object.assign(state, change);
  writeAddress();
  draw();
}

// --- the view ---

const act = { select: (selection) => freeze({ selection }), set, steady: () => state.frozen === null && freeze(), draw: () => draw() };
const twin = twinOf($("pane"), "-2");
const panes = [new Pane("", act)];
const recorded = () => state.show.length > 0;
const shelf = new Shelf(ask, () => draw());
const scatter = new Scatter($("slow-plot"));
const slow = new SlowWatch({ changed: () => draw(), ended: (reason) => { set({ watch: false }); slowNote(reason); } });
const down = new BreakdownPanel(state, act);

/** Stops the picture: a selection should not scroll away. */
function freeze(change = {}) {
  if (recorded()) return set(change);
  const { from, to } = stretch();
  set({ frozen: to, frozenLength: state.frozen === null ? to - from : state.frozenLength, ...change });
}

const lastAt = () => state.windows[state.windows.length - 1]?.at ?? Date.now() / 1000;
const { begin } = model;

/** The stretch of time in view, and true if a part of it is older than the page's own windows. */
function stretch() {
  const to = state.frozen ?? lastAt();
  const first = state.windows[0];
  // An agent that has just begun has no more to show.
  const known = first ? Math.min(state.range, Math.max(SHORTEST, to - begin(first))) : state.range;
  const live = state.range > KEPT ? state.range : known;
  const length = state.frozen === null ? live : state.frozenLength ?? state.range;
  const from = to - length;
  const older = first !== undefined && from < begin(first) - 0.5;
  return { from, to, isPast: older && (state.frozen !== null || state.range > KEPT) };
}

/** Windows of the disk before the page's own windows, and these. */
function windowsOf(isPast) {
  const first = state.windows[0];
  if (!isPast || !state.past?.windows.length || !first) return state.windows;
  // Page and disk share window edges; the disk rounds them to 1 ms.
  const before = state.past.windows.filter((w) => begin(w) < begin(first) - 0.01);
  const end = before[before.length - 1]?.at ?? -Infinity;
  return [...before, ...state.windows.filter((w) => begin(w) >= end - 0.01)];
}

function liveView() {
  const { from, to, isPast } = stretch();
  const shown = model.within(windowsOf(isPast), from, to);
  // The ends of the axis are gaps, too, once the disk has been asked.
  const near = isPast && state.past ? 15 + Math.max(10, (to - from) / COLUMNS) : NaN;
  const { edges, phases, rpcPhases, selection, scale } = state;
  return { scale, from, to, shown, selection, gaps: model.gaps(shown, from, to, near), label: clock, origin: 0, edges, phases, rpcPhases };
}

/** One view for each recording: from its beginning on, and as long as the longest. */
function recordedViews() {
  const all = state.show.map((name) => shelf.get(name, state.zoom));
  const [from, to] = state.zoom ?? [0, Math.max(SHORTEST, ...all.map((r) => r.ended))];
  return all.map((r) => {
    const shown = model.within(r.windows, from, to);
    const alone = all.length === 1 && r.began;
    return {
      from, to, shown, selection: state.selection, scale: state.scale, recording: r,
      gaps: model.gaps(shown, from, to, r.why || !shown.length ? NaN : Math.max(1.5, (to - from) / COLUMNS)),
      label: alone ? (at) => clock(r.began + at) : elapsed, origin: alone ? r.began : 0,
      edges: r.edges ?? state.edges, phases: r.phases ?? [], rpcPhases: r.rpc_phases ?? [],
    };
  });
}

// --- drawing ---

const draw = coalesced(() => {
  document.body.classList.toggle("recorded", recorded());
  document.body.classList.toggle("replay", state.replay);
  if (recorded()) banner("");
  const views = recorded() ? recordedViews() : [liveView()];
  if (views.length === 2 && !twin.isConnected) {
    $("panes").append(twin);
    panes[1] ??= new Pane("-2", act);
  } else if (views.length === 1) twin.remove();
  const shown = panes.slice(0, views.length);
  const scales = Pane.together(shown.map((pane, i) => pane.prepare(views[i], state)));
  const known = model.choices(views.flatMap((v) => (v.shown.length || recorded() ? v.shown : state.windows)));
  const options = [...new Set([...known, ...state.op.split(",")])];
  shown.forEach((pane, i) => {
    title(pane, views[i].recording);
    pane.draw(scales, options);
  });
  controls(views[0]);
  watch();
  if (recorded()) return;
  drawSlow(views[0]);
  down.draw(views[0]);
  cards(views[0]);
});

/** The recording of a pane, and its error. */
function title(pane, recording) {
  const line = pane.id("pane-title");
  line.hidden = !recording;
  if (!recording) return;
  const { name, host, kernel, began, ended, why } = recording;
  const text = began ? `${safe(host)} ${safe(kernel ?? "")}, ${new Date(began * 1000).toLocaleString()}, ${elapsed(ended)} long` : "";
  line.replaceChildren(el("span", {}, safe(name)), el("span", { class: "soft small" }, text), ...(why ? [el("span", { role: "note" }, safe(why))] : []));
}

function controls(v) {
  $("range").value = String(state.range);
  $("pause").setAttribute("aria-pressed", String(state.frozen !== null));
  $("pause").textContent = state.frozen === null ? "Pause" : "Go on";
  $("clear").hidden = !state.selection;
  $("later").disabled = state.frozen === null;
  if (!recorded() && document.activeElement !== $("goto")) $("goto").value = localTime(state.frozen === null ? v.to : (v.from + v.to) / 2);
  $("zoom").disabled = !state.selection;
  $("unzoom").disabled = !state.zoom;
  shelfControls();
  note(!recorded() && stretch().isPast ? state.past?.why ?? "" : "");
  status();
}

function shelfControls() {
  $("shelf").hidden = !shelf.list.length && !recorded();
  const names = [...new Set([...shelf.list.map((r) => r.name).reverse(), ...state.show])];
  const choices = { show: ["", ...names], beside: ["", ...names.filter((n) => n !== state.show[0])] };
  Object.entries(choices).forEach(([id, all], i) => {
    const list = $(id);
    if ([...list.options].map((o) => o.value).join("\n") !== all.join("\n")) {
      list.replaceChildren(...all.map((n) => el("option", { value: n }, n === "" ? (i ? "none" : "live") : safe(n))));
    }
    list.value = state.show[i] ?? "";
  });
  $("beside").disabled = !recorded();
}

function status() {
  const [text, edge] = recorded() ? [state.show.length === 2 ? "two recordings" : "a recording", "--link"]
    : state.gone ? ["not connected", "--bad"]
      : state.frozen !== null ? [`paused at ${clock(state.frozen)}`, "--warn"]
        : state.replay ? ["replay", "--link"] : state.windows.length ? ["live", "--good"] : ["waiting for data", "--warn"];
  if ($("status").textContent !== text) $("status").textContent = text;
  $("status").style.setProperty("--edge", `var(${edge})`);
}

/** A time for an input of date and time. */
function localTime(at) {
  const date = new Date(at * 1000);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function note(text) {
  $("past-note").hidden = !text;
  if ($("past-note").textContent !== text) $("past-note").textContent = text;
}

/** Findings of the time in view. */
function cards(v) {
  const { report } = state;
  if (!report) return;
  const { from, to } = state.selection ?? v;
  const live = state.frozen === null;
  // Later windows are not in the report.
  const until = Math.min(to, report.at);
  const seen = [...new Set(v.shown.flatMap((w) => (w.at >= from && w.at <= until ? Object.keys(w.findings) : [])))];
  const key = [report.at, ...(live ? [state.range] : [from, to]), ...seen, down.kind, down.running].join();
  const box = $("findings");
  if (box.dataset.of === key) return;
  box.dataset.of = key;
  replace(box, ...panels.findingCards(report, { from, to, live, seen }, down));
}

// --- slow operations ---

function slowNote(text) {
  $("slow-note").textContent = text;
}

function drawSlow(v) {
  $("slow-watch").setAttribute("aria-pressed", String(slow.running));
  $("slow-watch").textContent = slow.running ? "Stop" : "Watch";
  const shown = slow.running || slow.ops.length > 0;
  $("slow-plot").hidden = !shown;
  if (!shown) return;
  if (slow.running) slowNote(`${slow.ops.length} shown; ${slow.leftOut} left out.`);
  const { from, to } = state.selection ?? v;
  // The latest operations are newer than the latest window.
  const end = state.selection || state.frozen !== null ? to : Infinity;
  const ops = slow.ops.filter((o) => o.at >= from && o.at <= end);
  scatter.draw(v, slow.ops);
  replace($("slow"), panels.slowTable(ops));
}

/** Follows the address. */
function watch() {
  $("slow-over").value = state.over;
  const wanted = state.watch && !recorded() && !state.replay ? state.over : null;
  if (wanted === slow.over) return;
  slow.stop();
  slowNote(wanted ? "Watching." : "Not watching any more.");
  if (wanted) slow.start(wanted);
}
$("slow-watch").addEventListener("click", () => set({ watch: !state.watch }));
$("slow-over").addEventListener("change", (e) => set({ over: e.target.value }));

// --- keyboard and controls ---

$("range").addEventListener("change", (e) => {
  set({ range: Number(e.target.value), frozenLength: null });
  past();
});
$("pause").addEventListener("click", () => (state.frozen === null ? freeze() : set({ frozen: null })));
$("clear").addEventListener("click", () => {
  set({ selection: null });
  $("heat").focus();
});
/** Shows the time that ends there; the latest one live. */
function go(to) {
  const live = to >= lastAt();
  set({ frozen: live ? null : Math.max(state.range, to), frozenLength: null });
  past();
}
$("earlier").addEventListener("click", () => go((state.frozen ?? lastAt()) - state.range / 2));
$("later").addEventListener("click", () => go((state.frozen ?? lastAt()) + state.range / 2));
// The chosen time is in the middle.
$("goto").addEventListener("change", (e) => e.target.value && go(Date.parse(e.target.value) / 1000 + state.range / 2));
for (const [i, id] of ["show", "beside"].entries()) {
  $(id).addEventListener("change", (e) => {
    const show = [...state.show.slice(0, i), e.target.value].filter(Boolean);
    // A selection belongs to the times shown before.
    const other = recorded() && show.length ? {} : { selection: null, frozen: null };
    if (show.length) down.stop();
    set({ show, zoom: show.length ? state.zoom : null, ...other });
  });
}
$("zoom").addEventListener("click", () => state.selection && set({ zoom: [Math.max(0, state.selection.from), state.selection.to], selection: null }));
$("unzoom").addEventListener("click", () => set({ zoom: null, selection: null }));

document.addEventListener("keydown", (e) => {
  if (e.target.closest?.("select, input, summary") || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "Escape") {
    for (const pane of panes) pane.heat.cursor = null;
    set({ selection: null });
  } else if (e.key === "p" && !recorded()) $("pause").click();
  else if (e.key === "b" && !recorded() && !state.replay) $("down-run").click();
});
addEventListener("hashchange", () => {
  const before = down.query;
  readAddress();
  if (down.running && down.query !== before) down.start();
  past();
  draw();
});
addEventListener("resize", () => draw());
onScheme(() => draw());

// --- the agent ---

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the agent answers ${answer.status}`);
  return answer.json();
}

function banner(text) {
  $("banner").hidden = !text;
  if (text && $("banner").textContent !== text) $("banner").textContent = text;
}

async function windows() {
  for (;;) {
    const news = await ask(`/windows${state.since ? `?since=${encodeURIComponent(state.since)}` : ""}`);
    [state.since, state.edges, state.phases, state.rpcPhases, state.replay] = [news.since, news.edges, news.phases, news.rpc_phases, !!news.replay];
    if (news.host) {
      document.title = `${safe(news.host)}: nfscope`;
      $("host").textContent = `${safe(news.host)}  ${safe(news.kernel)}${state.replay ? "  (replay)" : ""}`;
    }
    model.take(state.windows, news.windows, KEPT);
    if (!news.more) return;
  }
}

let asking = false;
/** Asks for windows older than the page's own, if they are in view. The page goes on meanwhile. */
async function past() {
  const { from, to, isPast } = stretch();
  if (!isPast || asking) return;
  const near = state.frozen === null ? Math.max(10, state.range / COLUMNS) : 0.01;
  const known = state.past;
  if (known && Math.abs(known.to - known.from - (to - from)) < 0.01 && Math.abs(known.to - to) < near) return;
  asking = true;
  try {
    const answer = await fetch(`/windows?from=${from.toFixed(3)}&to=${to.toFixed(3)}&columns=${COLUMNS}`, { cache: "no-store" });
    if (answer.ok) {
      const news = await answer.json();
      state.edges = news.edges;
      state.past = { from, to, windows: news.windows, why: news.windows.length ? "" : "The history has nothing of this time." };
    } else {
      const why = (await answer.text()).trim();
      // An agent without history stays so (404); a disk that is busy is asked again.
      state.past = { from, to: answer.status === 404 ? to : NaN, windows: [], why };
    }
  } catch {
    // The page shows that the agent is gone, and asks again.
  }
  asking = false;
  draw();
}

let findingsAt = -Infinity;
async function findings() {
  if (performance.now() - findingsAt < 5000) return;
  findingsAt = performance.now();
  state.report = { ...await ask("/findings"), at: lastAt() };
  const health = await fetch("/healthz", { cache: "no-store" });
  banner(health.ok ? "" : (await health.text()).trim());
}

async function loop() {
  let wait = INTERVAL;
  try {
    // A hidden page asks for nothing, so that the agent reads less; nor does one that shows recordings.
    if (!document.hidden && !recorded()) {
      await windows();
      past();
      await findings();
      state.gone = null;
      draw();
    }
  } catch (e) {
    state.gone ??= Date.now() / 1000;
    const why = e instanceof TypeError ? "the agent cannot be reached" : e.name === "TimeoutError" ? `no answer for ${PATIENCE / 1000} s` : e.message;
    banner(`Since ${clock(state.gone)}: ${why}. Trying again every ${RETRY / 1000} s.`);
    findingsAt = -Infinity;
    status();
    wait = RETRY;
  }
  setTimeout(loop, wait);
}

$("probes").addEventListener("toggle", async () => {
  if (!$("probes").open) return;
  try {
    replace($("probe-table"), panels.probeTable((await ask("/probes")).probes));
  } catch {
    replace($("probe-table"), el("p", {}, "The agent cannot be reached."));
  }
});

readAddress();
shelf.load();
loop();
if (recorded()) draw();
