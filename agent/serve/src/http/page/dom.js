// Elements from text. Names from the server only ever become text, never markup.

import { percent } from "./format.js";

export const $ = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
export function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if ((value ?? false) !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.filter((c) => (c ?? null) !== null));
  return e;
}

/** A name from the server: characters that steer a text's direction or a terminal appear by number. */
export function safe(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Rows of a table that is folded. */
const FOLDED = 10;
/** Order of the tables by their heads: {by, up, all}, and true if all rows are shown. */
const orders = new Map();
const FACTORS = { "µs": 1e-6, ms: 1e-3, k: 1e3, M: 1e6, G: 1e9 };

/** Number that a cell shows, by its unit; NaN for a name. */
function amount(text) {
  const [, digits, unit] = /^ ?([\d.]+) ?(µs|ms|s|%|[kMG])?(?:B\/s)?$/.exec(text) ?? [];
  return text === "longer" ? Infinity : digits * (FACTORS[unit] ?? 1);
}

/** A table; each cell is text, an element, {class, content}, or a function that gives one. A click on a head sorts it, `most` rows are shown. */
export function table(head, rows, most = FOLDED) {
  const key = head.join();
  const box = el("div", { class: "table" });
  const plain = (c) => c instanceof Node || typeof c !== "object" || c === null;
  const text = (c) => (typeof c === "function" ? "-" : plain(c) ? c?.textContent ?? c ?? "-" : c.content.textContent ?? c.content);
  const cell = (c) => (typeof c === "function" ? el("td", {}, c()) : plain(c) ? el("td", {}, c ?? "-") : el("td", { class: c.class, title: c.title }, c.content));
  const compare = (i, up) => (a, b) => {
    const [x, y] = [text(a[i]), text(b[i])];
    const [m, n] = [amount(x), amount(y)];
    // Unknown values are last in either order.
    if (x === "-" || y === "-") return (x === "-") - (y === "-");
    const order = m <= n || m >= n ? m - n || 0 : x.localeCompare(y, undefined, { numeric: true });
    return up ? order : -order;
  };
  const fill = () => {
    const { by, up, all } = orders.get(key) ?? {};
    const change = (order) => {
      orders.set(key, { ...orders.get(key), ...order });
      fill();
      // Other tables of the kind follow.
      dispatchEvent(new Event("resize"));
    };
    const sorted = by === undefined ? rows : [...rows].sort(compare(by, up));
    // Names rise at first, numbers fall.
    const rises = (i) => rows.every((r) => Number.isNaN(amount(text(r[i]))));
    const heads = head.map((h, i) => el("th", { "aria-sort": i === by && (up ? "ascending" : "descending") }, el("button", {
      "data-key": `${key} ${i}`, onclick: () => change({ by: i, up: i === by ? !up : rises(i) }) }, h)));
    const more = rows.length > most && el("button", { "data-key": key, onclick: () => change({ all: !all }) },
      all ? "Fewer" : `All ${rows.length}`);
    replace(box, el("table", {}, el("thead", {}, el("tr", {}, ...heads)),
      el("tbody", {}, ...sorted.slice(0, all ? rows.length : most).map((r) => el("tr", {}, ...r.map(cell))))), ...(more ? [more] : []));
  };
  fill();
  return box;
}

/** A name in a table's first column. */
export const name = (text) => ({ class: "name", title: safe(text), content: safe(text) });

/** A square of a colour. */
export function swatch(color) {
  const e = el("span", { class: "swatch", "aria-hidden": "true" });
  e.style.background = color;
  return e;
}

/** A remark. */
export const soft = (text) => el("p", { class: "soft" }, text);

/** A part 0 to 1 as a bar and its number. */
export function bar(part) {
  const filled = el("i");
  filled.style.width = `${(100 * Math.min(1, part || 0)).toFixed(1)}%`;
  return el("span", {}, el("span", { class: "bar", "aria-hidden": "true" }, filled), ` ${percent(part)}`);
}

/** Replaces an element's children. The keyboard's focus moves to the like element of the new ones, and open parts stay open. */
export function replace(parent, ...children) {
  const active = parent.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = new Set([...parent.querySelectorAll("details[open]")].map((e) => e.dataset.key));
  parent.replaceChildren(...children);
  for (const e of parent.querySelectorAll("details")) e.open = open.has(e.dataset.key);
  if (active) [...parent.querySelectorAll("[data-key]")].find((e) => e.dataset.key === active)?.focus();
}
