// Colours of both schemes. The tests compute the contrast of each from here.

const dark = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => dark.matches;
export const onScheme = (f) => dark.addEventListener("change", f);

/** From few to many: luminance falls (or rises on dark ground) without a turn. */
const RAMP = {
  light: [[222, 231, 240], [152, 190, 214], [86, 141, 190], [52, 90, 160], [45, 36, 98]],
  dark: [[38, 50, 66], [60, 84, 128], [96, 124, 178], [214, 158, 92], [255, 224, 160]],
};

/** From the ground to these for operations side by side, in their order. */
const HUES = {
  light: [[255, 255, 255], [30, 64, 150], [150, 60, 0], [0, 95, 60], [130, 20, 110]],
  dark: [[24, 33, 42], [120, 190, 255], [255, 180, 90], [120, 225, 150], [240, 150, 235]],
};

/** The colour of a part 0 to 1 of the largest count; of one of several operations where `hue` is its number. */
export function ramp(part, hue = null, scheme = isDark() ? "dark" : "light") {
  if (hue !== null) {
    const [ground, strong] = [HUES[scheme][0], HUES[scheme][hue + 1]];
    return ground.map((v, c) => Math.round(v + (strong[c] - v) * (0.2 + 0.8 * Math.min(1, Math.max(0, part)))));
  }
  const stops = RAMP[scheme];
  const place = Math.min(1, Math.max(0, part)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(place));
  return stops[i].map((v, c) => Math.round(v + (stops[i + 1][c] - v) * (place - i)));
}

/** Colours of the phases, in the order of the agent's names; further phases begin anew. */
export const PHASES = {
  light: ["#2f6fb3", "#7a5ea8", "#b5541c", "#8a6d00", "#1d7a6d", "#9c3d72", "#4d6b1f", "#6b5344", "#5b6470"],
  dark: ["#78b2ee", "#b79ce6", "#f0935a", "#d9bb4a", "#5cc8b8", "#e58cbc", "#a5c96a", "#c4a592", "#a3afbb"],
};
export const phaseColor = (i) => {
  const all = PHASES[isDark() ? "dark" : "light"];
  return all[i % all.length];
};

/** A colour of the style sheet as a canvas takes it: custom properties keep both schemes until an element uses them. */
const probe = document.body.appendChild(document.createElement("i"));
probe.hidden = true;
export function css(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
