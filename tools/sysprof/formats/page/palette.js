// Colours of a flame graph.
//
// Each kind of frames has a colour, and each state of a thread; each name varies it a little.

const palette = (function () {
"use strict";

// By number of kind: what the legend says, hue, saturation, lightness.
const KINDS = [
  ["Lua, interpreted", 96, 48, 66], ["Lua, compiled", 206, 72, 70],
  ["Lua builtin", 172, 45, 64], ["C", 38, 88, 68], ["VM", 12, 78, 72],
  ["marker", 220, 9, 74], ["no symbol", 268, 32, 76], ["waiting", 226, 34, 80]
];
// The same of the states of threads. Their numbers follow.
const STATES = [
  ["on CPU", 18, 84, 70], ["off CPU", 212, 52, 80], ["runnable", 48, 90, 64]
];
const ALL = KINDS.concat(STATES), ON = KINDS.length, OFF = ON + 1, RUNNABLE = ON + 2;
const LUA = 0, COMPILED = 1, MATCH = "#d63ad6", DARKER = 12, STRIPE = 4;

function css(hue, sat, light) {
  return "hsl(" + hue + " " + sat + "% " + light + "%)";
}

// Returns a function that gives the colour of a name, by its number, as a frame
// of some kind; faded while other names match a search.
function maker(names) {
  const shades = names.map(name => {
    let h = 0;
    for (let k = 0; k < name.length; k++) h = (h * 31 + name.charCodeAt(k)) | 0;
    return [(h & 15) - 8, (h >> 4 & 7) - 4];
  });
  return (name, kind, dark, faded) => {
    const [, hue, sat, light] = ALL[kind], [turn, lighter] = shades[name];
    return css(hue + turn, faded ? sat * 0.35 : sat,
               light + lighter - (dark ? DARKER : 0));
  };
}

// Of a comparison: change is -1 (all gone) to 1 (all new).
function changed(change, dark) {
  const much = Math.min(Math.abs(change), 1);
  return css(change > 0 ? 4 : 214, much < 0.02 ? 0 : 30 + 55 * much,
             (dark ? 76 : 88) - 26 * much);
}

// What a comparison has no more: the two colours of stripes, as a background and on a canvas.
function stripeColours(dark) {
  return [dark ? "#2a2f3a" : "#fff", changed(-0.6, dark)];
}

function stripes(dark) {
  const [ground, line] = stripeColours(dark);
  return "repeating-linear-gradient(135deg, " + line + " 0 2px, " + ground + " 2px 5px)";
}

const patterns = {};  // By what hatched() takes.
function hatched(match, dark) {
  const key = [match, dark];
  if (patterns[key]) return patterns[key];
  const tile = document.createElement("canvas"), ctx = tile.getContext("2d");
  const [ground, line] = stripeColours(dark);
  tile.width = tile.height = 2 * STRIPE;
  ctx.fillStyle = ground;
  ctx.fillRect(0, 0, 2 * STRIPE, 2 * STRIPE);
  ctx.strokeStyle = match ? MATCH : line;
  ctx.lineWidth = 2;
  for (const x of [-2 * STRIPE, 0, 2 * STRIPE]) {
    ctx.moveTo(x, 2 * STRIPE);
    ctx.lineTo(x + 2 * STRIPE, 0);
  }
  ctx.stroke();
  return patterns[key] = ctx.createPattern(tile, "repeat");
}

return {
  changed: changed, stripes: stripes, hatched: hatched,
  LUA: LUA, COMPILED: COMPILED, ON: ON, OFF: OFF, RUNNABLE: RUNNABLE, MATCH: MATCH,
  maker: maker,
  kinds: KINDS.map((_, kind) => kind),
  label: kind => ALL[kind][0],
  plain: (kind, dark) => {
    const [, hue, sat, light] = ALL[kind];
    return css(hue, sat, light - (dark ? DARKER : 0));
  },
  ofAll: dark => dark ? "#3a404c" : "#d5d9e0"
};
})();
