// Script of a flame graph's page: the state that is shown, and what changes it.
//
// The page is a shell of views over one block of data. A view is a tree that is made from the data
// when it is first shown (VIEWS). The other files stand before this one in the page.
// valueText() is that of the profile's unit, from values_*.js.

(function () {
"use strict";

const { LUA, COMPILED, ON, OFF, RUNNABLE } = palette;

const $ = id => document.getElementById(id);
const canvas = $("graph");
const data = JSON.parse($("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const names = trees.readNames(data.names, data.kinds, COMPILED);
const ready = data.states ? names.number.get("[runnable]") : -1;
const whole = trees.parse(data.nodes, data.diff || data.states, ready);
const fill = data.columns ? columns.parse(data.columns.texts) : null;
const spread = data.spread ? spreads.parse(data.spread) : null;
const baseSpread = data.base_spread ? spreads.parse(data.base_spread) : null;
const title = document.title;
$("data").remove();
data.nodes = data.spread = data.base_spread = null;
if (fill) {
  data.columns.texts = null;
  const ms = data.columns.step / 1000;
  $("column").textContent = ms < 1000 ? ms + " ms" : ms / 1000 + " s";
}

// {{values}}

// -- Views -------------------------------------------------------------------

const VIEWS = {
  forward: () => trees.forward(shaped, names, data.diff),
  reversed: () => reversed.make(shaped, names)
};
let shaped = whole;  // The data of the time, without hidden frames and folded calls, as the state says;
let made = {};       // and the views of them.

// The reversed view needs to know what is gone from the forward one, which comes first.
function viewOf(name) {
  return made[name] || (made[name] = VIEWS[name]());
}

// -- State -------------------------------------------------------------------

const link = links.open(names, next => become(next));
let state = links.WHOLE;
let tree = viewOf("forward");
let zoom = 0;
let isChance = null; // Of a node of a comparison: is its change no more than chance? null if that is not known.
let hovered = -1, pointer = null;  // The node at the pointer, and the event that put it there.
let flags = null;    // By number of name: 1 if it matches; null without search.
let step = null;     // To the next match, made when needed.
let typing = null;   // Timer: the address follows when the user pauses.

const byState = () => data.states && !state.kinds;
const size = i => tree.total[i] + (data.diff && !state.now ? tree.gone[i] : 0);
const nodeName = i => i ? data.names[tree.name[i]] : "all";
const isMatch = i => flags !== null && i > 0 && flags[tree.name[i]] === 1;

// -- Looks -------------------------------------------------------------------

const colourOf = palette.maker(data.names);

// Share of a node that is compiled code; 0 to 1.
const compiledShare = i => tree.total[i] ? tree.compiled[i] / tree.total[i] : 0;

// How a node's total has changed, -1 (not there any more) to 1 (not there before).
function nodeChange(i) {
  const now = tree.total[i], before = tree.otherTotal[i];
  return now || before ? (now - before) / Math.max(now, before) : 0;
}

function colour(i, kind) {
  if (isMatch(i)) return palette.MATCH;
  if (!i) return byState() ? palette.plain(kind, dark.matches) : palette.ofAll(dark.matches);
  return colourOf(tree.name[i], kind, dark.matches, flags !== null);
}

// Share of a node's box that is gone.
function goneShare(i) {
  return data.diff && size(i) ? (size(i) - tree.total[i]) / size(i) : 0;
}

// The name of a box, its colour, and the share of the box that has room for it.
function label(i) {
  const gone = goneShare(i), isLight = gone === 1 || !i && !data.diff && !byState();
  const ink = isMatch(i) && gone < 1 ? "#fff" : isLight && dark.matches ? "#e4e7ec" : "#15181c";
  return [nodeName(i), ink, gone < 1 ? 1 - gone : 1];
}

// The parts of a box by state, from the left: on CPU, runnable, and what else is off CPU.
function stateParts(i) {
  const whole = tree.total[i], share = v => whole ? Math.min(v / whole, 1) : 0;
  const off = share(tree.otherTotal[i]), ready = tree.readyTotal ? share(tree.readyTotal[i]) : 0;
  return [[1 - off, ON], [ready, RUNNABLE], [off - ready, OFF]].filter(([part]) => part > 0)
    .map(([part, kind]) => [part, colour(i, kind)]);
}

// The left part of a box is as long as it was compiled. The right part of a comparison is gone.
function parts(i) {
  if (data.diff) {
    const gone = goneShare(i);
    const change = isChance && isChance(i) ? 0 : nodeChange(i);
    const now = isMatch(i) ? palette.MATCH : palette.changed(change, dark.matches);
    return [[1 - gone, now], [gone, palette.hatched(isMatch(i), dark.matches)]];
  }
  if (byState()) return stateParts(i);
  const share = i ? compiledShare(i) : 0, kind = i ? data.kinds[tree.name[i]] : 0, out = [];
  if (share > 0) out.push([share, colour(i, COMPILED)]);
  if (share < 1) out.push([1 - share, colour(i, kind === COMPILED ? LUA : kind)]);
  return out;
}

const graph = graphs.make(canvas, $("scroll"), $("space"), {
  size: size, parts: parts, label: label,
  dark: () => dark.matches, icicle: () => state.icicle
});

function legend() {
  const isDark = dark.matches, present = new Set(data.kinds);
  if (data.diff) {
    const gone = state.now ? [] : [[palette.stripes(isDark), "gone"]];
    const changes = baseSpread ? data.changes.map((text, i) => i === 1 ? text + ", or chance" : text) : data.changes;
    tips.legend(changes.map((text, i) => [palette.changed(1 - i, isDark), text]).concat(gone));
    return;
  }
  const kinds = byState() ? data.threads || whole.ready ? [ON, RUNNABLE, OFF] : [ON, OFF] :
                palette.kinds.filter(kind => present.has(kind));
  tips.legend(kinds.map(kind => [palette.plain(kind, isDark), palette.label(kind)]));
}

// -- From one state to another -------------------------------------------------

function setPressed(id, on) { $(id).setAttribute("aria-pressed", on); }

// A button that takes something back.
function undoButton(text, hint, change) {
  const button = document.createElement("button");
  button.textContent = "\u2715 " + text;
  button.title = hint;
  button.addEventListener("click", () => go(change()));
  return button;
}

// The time that is shown, and the frames that are hidden, each with a button that shows all again.
function showHidden() {
  const range = rangeText();
  const times = range ? [undoButton(range, "Show the whole time again", () => ({ range: [] }))] : [];
  $("hidden").replaceChildren(...times, ...state.hidden.map(name => undoButton(data.names[name],
    "Show again: " + data.names[name], () => ({ hidden: state.hidden.filter(n => n !== name) }))));
}

function reshape() {
  const hidden = new Uint8Array(data.names.length);
  for (const name of state.hidden) hidden[name] = 1;
  made = {};
  tree = null;
  const { step } = data.columns || {}, range = state.range.map(us => us / step);
  const shown = range.length ? trees.refill(whole, ready, (self, off) => fill(self, off, ...range)) : whole;
  shaped = trees.shape(shown, names, state.hidden.length ? hidden : null, state.fold);
}

// Makes the page show a state.
function become(next) {
  const before = state;
  state = next = { ...next, range: fitted(next.range) };
  document.title = title + (rangeText() && ", " + rangeText());
  threads.mark(state.range);
  const isSame = key => String(next[key]) === String(before[key]);
  if (!["range", "fold", "hidden"].every(isSame)) reshape();
  const forward = viewOf("forward");
  const shown = state.reverse ? viewOf("reversed") : forward;
  if (shown !== tree || next.now !== before.now) step = null;
  tree = shown;
  isChance = spread && baseSpread ? spreads.chanceOf(spread, baseSpread, tree) : null;
  zoom = trees.find(tree, state.zoom);
  if (!size(zoom)) zoom = 0;
  state = { ...state, zoom: trees.pathOf(tree, zoom) };
  for (const id of ["icicle", "reverse", "kinds", "fold"]) setPressed(id, state[id]);
  setPressed("gone", !state.now);
  $("total").textContent = valueText(forward.total[0]) + (data.diff ? ", compared with " + data.base : "") +
    (data.diff && data.amounts ? ": " + valueText(forward.otherTotal[0]) : "");
  if (document.activeElement !== $("search")) $("search").value = state.query;
  showHidden();
  legend();
  hover(-1);
  search(before.query);
  graph.show(tree, zoom);
}

// The user changes the state.
function go(change) {
  clearTimeout(typing);
  become({ ...state, ...change });
  link.push(state);
}

function zoomTo(i) { go({ zoom: trees.pathOf(tree, i) }); }

// Hides a frame. What is then at the pointer is pointed at.
function hide(i, event) {
  if (i <= 0) return;
  go({ hidden: state.hidden.concat(tree.name[i]) });
  hover(graph.boxAt(event), event);
}

function reset() {
  $("search").value = "";
  go({ query: "", zoom: [], hidden: [], range: [] });
}

// -- A part of the time ----------------------------------------------------------

// The options of the command line that show the same.
function rangeText() {
  const [from, to] = state.range;
  return to ? "--from=" + from / 1e6 + " --to=" + to / 1e6 : "";
}

// A range that whole columns have; none for the whole time.
function fitted(range) {
  if (!fill || !range.length) return [];
  const { step, count } = data.columns;
  const from = Math.floor(range[0] / step), to = Math.min(Math.ceil(range[1] / step), count);
  return from < to && to - from < count ? [from * step, to * step] : [];
}

// Moves the range by its length, and multiplies that.
function changeRange(by, times) {
  const { step, count } = data.columns, range = state.range.length ? state.range : [0, count * step];
  const columns = Math.round((range[1] - range[0]) / step);
  const many = Math.min(Math.max(Math.floor(columns * times), 1), count);
  const from = Math.min(Math.max(range[0] / step + by * many, 0), count - many);
  go({ range: [from * step, (from + many) * step] });
}

// -- Search --------------------------------------------------------------------

function marked(place) {
  const out = $("matched");
  out.textContent = "";
  if (!flags) return;
  const sum = viewOf("forward").within(flags), b = document.createElement("b");
  const { count } = step || marks(), number = count.toLocaleString("en");
  b.textContent = tips.percent(sum, tree.total[0]);
  out.append((place ? place.toLocaleString("en") + " of " : "") + number +
             (count === 1 ? " match, " : " matches, "), b, " (" + valueText(sum) + ")");
}

function marks() {
  const found = tree.mark(flags);
  step = searching.stepper(tree, flags, found, size);
  step.count = found.count;
  return step;
}

// Finds what the query says. before: the one that was found last.
function search(before, asked) {
  const { query } = state;
  if (query !== before || asked) {
    const isCostly = !asked && searching.isCostly(query, data.names);
    const test = query && !isCostly ? searching.matcher(query) : null;
    flags = test ? Uint8Array.from(data.names, name => test(name) ? 1 : 0) : null;
    step = null;
    graph.outline(-1);
    if (query && !test) {
      $("matched").textContent = isCostly ? "Enter searches: this may take long" : "no regular expression";
      return;
    }
  }
  if (!query || flags) marked();
}

// The user types. The address follows without a new entry in the history.
function type(query) {
  const before = state.query;
  tips.hide();
  state = { ...state, query: query };
  search(before, true);
  graph.redraw();
  clearTimeout(typing);
  typing = setTimeout(() => link.replace(state), 300);
}

// Goes to the next match, or the one before. What is too narrow to be seen fills the width.
function toMatch(by) {
  if (state.query && !flags) search(state.query, true);
  const found = flags && (step || marks())(by);
  if (!found) return;
  const [i, place] = found;
  if (graph.widthOf(i) < 20) zoomTo(i);
  graph.outline(i);
  marked(place);
  status(i);
}

// The spread is that of the whole time. A comparison needs it of both profiles.
function intervalsOf(i) {
  if (!spread || state.range.length || data.diff && !baseSpread) return null;
  return spreads.ofNode(spread, baseSpread, tree, i);
}

// -- Pointer -------------------------------------------------------------------

function status(i) {
  $("hover").textContent = i < 0 ? "" : nodeName(i) + " \u2014 self " +
    tips.percent(tree.self[i], tree.total[0]) + ", total " +
    tips.percent(tree.total[i], tree.total[0]);
}

function hover(i, event) {
  hovered = i;
  pointer = event;
  graph.hover(i);
  canvas.style.cursor = i >= 0 ? "pointer" : "default";
  status(i);
  if (i < 0) tips.hide();
  else tips.show(nodeName(i), tips.rowsOf(data, tree, zoom, i, compiledShare(i), valueText, intervalsOf(i)), event);
}

function onClick(event) {
  const i = graph.boxAt(event);
  if (i < 0) return;
  if (event.altKey) {
    hide(i, event);
    return;
  }
  zoomTo(i);
  hover(graph.boxAt(event), event);
}

// -- Keys ----------------------------------------------------------------------

// Where the arrow keys go with the root at the bottom; turned over, these differ.
const ARROWS = { ArrowUp: "callee", ArrowDown: "caller", ArrowLeft: "before",
                 ArrowRight: "after" };
const OPPOSITE = { callee: "caller", caller: "callee" };

const KEYS = {
  "/": () => { $("search").focus(); $("search").select(); },
  Escape: reset,
  i: () => go({ icicle: !state.icicle }),
  r: () => go({ reverse: !state.reverse, zoom: [] }),
  f: () => go({ fold: !state.fold }),
  h: () => hide(hovered, pointer)
};
if (data.states) KEYS.k = () => go({ kinds: !state.kinds });
if (fill) {
  KEYS[","] = () => changeRange(-1, 1);
  KEYS["."] = () => changeRange(1, 1);
  KEYS["-"] = () => changeRange(0, 0.5);
  KEYS["+"] = () => changeRange(0, 2);
}
if (data.diff) KEYS.g = () => go({ now: !state.now });
for (const key in ARROWS) KEYS[key] = () => {
  const towards = ARROWS[key];
  const to = trees.neighbour(tree, zoom, state.icicle && OPPOSITE[towards] || towards, size);
  if (to >= 0) zoomTo(to);
};

// In the search field only these keys are commands; Esc empties it first.
const FIELD_KEYS = {
  Enter: event => toMatch(event.shiftKey ? -1 : 1),
  Escape: () => {
    $("search").blur();
    $("search").value = "";
    go({ query: "" });
  }
};

function onKey(event) {
  const inField = event.target === $("search");
  if ($("report").open || event.altKey) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "f" && !inField) {
    KEYS["/"]();  // In the field, the browser's own search opens.
  } else if (event.ctrlKey || event.metaKey) {
    return;
  } else {
    const keys = inField ? FIELD_KEYS : KEYS;
    // A button takes Enter and the space bar itself.
    if (!Object.hasOwn(keys, event.key)) return;
    keys[event.key](event);
  }
  event.preventDefault();
}

// -- Start -------------------------------------------------------------------

if (data.threads) threads.show(data.threads, (texts, event) => {
  if (texts) tips.show(texts[0], [[texts[1]], ...texts[2]], event);
  else tips.hide();
}, fill && (range => go({ range: range })));
canvas.addEventListener("mousemove", event => hover(graph.boxAt(event), event));
canvas.addEventListener("mouseleave", () => hover(-1));
canvas.addEventListener("click", onClick);
$("scroll").addEventListener("scroll", () => hover(-1));
$("search").addEventListener("input", event => type(event.target.value));
$("search").addEventListener("focus", tips.hide);
for (const [id, key] of [["icicle", "i"], ["reverse", "r"], ["kinds", "k"], ["fold", "f"],
                         ["gone", "g"], ["reset", "Escape"]]) {
  $(id).hidden = !KEYS[key];
  $(id).addEventListener("click", () => KEYS[key]());
}
$("about").addEventListener("click", () => $("report").showModal());
document.addEventListener("keydown", onKey);
dark.addEventListener("change", () => { legend(); graph.redraw(); });
become(link.first);
new ResizeObserver(graph.resize).observe($("scroll"));
graph.resize();
graph.show(tree, zoom);
})();
