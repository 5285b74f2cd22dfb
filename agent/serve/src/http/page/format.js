// Numbers as people read them. The same units as `nfscope top`.

/** Seconds as µs, ms or s with three digits. */
export function time(seconds) {
  if ((seconds ?? null) === null) return "-";
  if (!Number.isFinite(seconds)) return "longer";
  if (seconds === 0) return "0 s";
  const [factor, unit] = seconds < 1e-3 ? [1e6, "µs"] : seconds < 1 ? [1e3, "ms"] : [1, "s"];
  return `${digits(seconds * factor)} ${unit}`;
}

/** Three significant digits, without an exponent. */
export function digits(value) {
  if ((value ?? null) === null) return "-";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5) return scaled(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  return String(Number(value.toPrecision(3)));
}

function scaled(value) {
  const [factor, unit] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([factor]) => Math.abs(value) >= factor);
  return `${(value / factor).toPrecision(3)} ${unit}`;
}

/** Bytes a second. */
export const bytes = (value) => digits(value).replace(/(\d)$/, "$1 ").replace(/[^-]$/, "$&B/s");

export const percent = (ratio) =>
  (ratio ?? null) === null ? "-" : `${(100 * ratio).toFixed(ratio < 0.1 ? 1 : 0)} %`;

/** Seconds since 1970 as the viewer's time of day. */
export const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour12: false });

/** Seconds since a recording began. */
export function elapsed(seconds) {
  const all = Math.round(seconds);
  const two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(all / 3600)}:${two(Math.floor(all / 60) % 60)}:${two(all % 60)}`;
}

/** A finding's or a phase's name as words. */
export const words = (name) => name.replaceAll("_", " ");
