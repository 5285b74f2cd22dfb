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

/** A table; each cell is text, an element, or {class, content}. */
export function table(head, rows) {
  const cell = (c) => (c instanceof Node || typeof c !== "object" || c === null ? el("td", {}, c ?? "-") : el("td", { class: c.class, title: c.title }, c.content));
  return el("div", { class: "table" },
    el("table", {},
      el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map(cell))))));
}

/** A name in a table's first column. */
export const name = (text) => ({ class: "name", title: safe(text), content: safe(text) });

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
