// State of a flame graph in the page's address.
//
// The fragment holds what differs from the whole profile. Anybody can make a link, so all that it
// holds is checked: names have to be names of the data, and the rest is text and flags.

const links = (function () {
"use strict";

const TEXT_MAX = 65536, QUERY_MAX = 1000, PATH_MAX = 2000, HIDDEN_MAX = 100;
const FLAGS = { i: "icicle", r: "reverse", k: "kinds", f: "fold", n: "now" };
const ENDS = ["from", "to"];

// zoom: numbers of names from the root on; hidden: numbers of names; now: without what is gone; range:
// microseconds from and to, or none.
const WHOLE = Object.freeze({ query: "", zoom: [], hidden: [], range: [], icicle: false, reverse: false,
                              kinds: false, fold: false, now: false });

// The name of the last frame stands beside the path: in the data of another profile its numbers
// mean other names.
function encode(state, names) {
  const out = new URLSearchParams(), { zoom } = state;
  if (state.query) out.set("q", state.query);
  for (const key in FLAGS) if (state[FLAGS[key]]) out.set(key, "1");
  for (const name of state.hidden) out.append("h", names.texts[name]);
  if (zoom.length && zoom.length <= PATH_MAX) {
    out.set("z", zoom.join("."));
    out.set("zn", names.texts[zoom[zoom.length - 1]]);
  }
  state.range.forEach((us, i) => out.set(ENDS[i], us / 1e6));
  return out.toString();
}

function zoomOf(given, names) {
  const path = given.get("z") || "";
  if (!/^\d{1,9}(\.\d{1,9})*$/.test(path)) return [];
  const zoom = path.split(".", PATH_MAX + 1).map(Number);
  const last = names.texts[zoom[zoom.length - 1]];
  return zoom.length <= PATH_MAX && last !== undefined && last === given.get("zn") ? zoom : [];
}

// Seconds, as the options --from and --to have them.
function rangeOf(given) {
  const texts = ENDS.map(key => given.get(key) || "");
  if (!texts.every(text => /^\d{1,9}(\.\d{1,6})?$/.test(text))) return [];
  const range = texts.map(text => Math.round(text * 1e6));
  return range[0] < range[1] ? range : [];
}

function decode(text, names) {
  const state = { ...WHOLE };
  if (text.length > TEXT_MAX) return state;
  const given = new URLSearchParams(text);
  state.query = (given.get("q") || "").slice(0, QUERY_MAX);
  for (const key in FLAGS) state[FLAGS[key]] = given.get(key) === "1";
  const hidden = given.getAll("h").slice(0, HIDDEN_MAX).map(name => names.number.get(name));
  state.hidden = [...new Set(hidden.filter(name => name !== undefined))];
  state.zoom = zoomOf(given, names);
  state.range = rangeOf(given);
  return state;
}

const fragment = () => location.hash.slice(1);

// changed(state) is called when the user goes back or changes the address.
function open(names, changed) {
  let shown = fragment();

  // A place that allows no history, such as a frame of another page, has none.
  function write(how, state) {
    const text = encode(state, names);
    if (text === shown) return;
    shown = text;
    try { history[how](null, "", "#" + text); } catch (e) { return; }
    shown = fragment();
  }

  function look() {
    if (fragment() === shown) return;
    shown = fragment();
    changed(decode(shown, names));
  }
  addEventListener("popstate", look);
  addEventListener("hashchange", look);
  return { first: decode(shown, names), push: state => write("pushState", state),
           replace: state => write("replaceState", state) };
}

return { open: open, WHOLE: WHOLE, decode: decode, encode: encode };
})();
