----------------------------------------------------------------------------
-- Script of a flame graph's page, in JavaScript.
--
-- Draws only visible frames on a canvas, so its speed does not depend on the number of
-- frames. Uses sysprof.formats.flamegraph_trees and flamegraph_palette. Names get to the
-- page only as text, never as HTML. sysprof.formats.flamegraph puts in how values are written.
----------------------------------------------------------------------------

return [=[
(function () {
"use strict";

const ROW = 18, FONT = 12, NARROW = 0.4, TEXT_MIN = 22;
const { LUA, COMPILED, ON, OFF } = palette;

const $ = id => document.getElementById(id);
const canvas = $("graph"), ctx = canvas.getContext("2d");
const data = JSON.parse($("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");

// -- State of the view -----------------------------------------------------

// Number of the first name of the same text.
const first = new Map();
data.names.forEach((name, i) => { if (!first.has(name)) first.set(name, i); });
const profile = trees.read(data.nodes, data.names,
  data.kinds.map(kind => kind === COMPILED ? 1 : 0),
  data.names.map(name => first.get(name)), data.diff || data.states);

const forward = profile.forward();
let reversed = null;       // the same with the leaf first, made when needed
let tree = forward;        // forward or reversed
let zoom = 0;              // node that fills the width
let icicle = false;
let byState = data.states; // colours are those of states, not of kinds
let matches = null;        // by name: 1 if it matches; null without search
let hovered = -1;
let shownDepth = 0;        // deepest level below the zoomed node
let width = 0, height = 0; // of the canvas in CSS pixels
let boxes = [];            // what was drawn: node, x, width; by level
let charWidth = 7;

// -- Texts -------------------------------------------------------------------

{{values}}
function percent(v, whole) {
  return (whole ? 100 * v / whole : 0).toFixed(2) + " %";
}

function nodeName(i) { return i ? data.names[tree.name[i]] : "all"; }

// Share of a node that is compiled code, 0 to 1.
function compiledShare(i) {
  return tree.total[i] ? tree.compiled[i] / tree.total[i] : 0;
}

// Share of a node that is off CPU, 0 to 1.
function offShare(i) {
  return tree.total[i] ? Math.min(tree.otherTotal[i] / tree.total[i], 1) : 0;
}

// How a node's total has changed, -1 (not there any more) to 1 (not there before).
function nodeChange(i) {
  const now = tree.total[i], before = tree.otherTotal[i];
  return now || before ? (now - before) / Math.max(now, before) : 0;
}

// Kind of a node; Lua, whether it is compiled or not.
function nodeKind(i) {
  const kind = data.kinds[tree.name[i]];
  return kind === COMPILED ? LUA : kind;
}

function kindText(i) {
  const share = compiledShare(i);
  if (share === 0) return palette.label(nodeKind(i));
  if (share === 1) return palette.label(COMPILED);
  return "Lua, " + percent(share, 1) + " compiled";
}

// -- Colours -------------------------------------------------------------------

const colourOf = palette.maker(data.names);

function colour(i, kind) {
  if (!i && !byState) return palette.ofAll(dark.matches);
  if (!i) return palette.plain(kind);
  if (matches && matches[tree.name[i]]) return palette.MATCH;
  if (data.diff) return palette.changed(nodeChange(i), dark.matches);
  return colourOf(tree.name[i], kind, dark.matches, matches !== null);
}

// Paints a box of width w: the left part of a function as compiled as it was, or of a node
// as long on CPU as it was.
function paint(i, x, y, w) {
  const share = byState ? 1 - offShare(i) : i && !data.diff ? compiledShare(i) : 0;
  if (share < 1) {
    ctx.fillStyle = colour(i, byState ? OFF : i && nodeKind(i));
    ctx.fillRect(x, y, w, ROW - 1);
  }
  if (share > 0) {
    ctx.fillStyle = colour(i, byState ? ON : COMPILED);
    ctx.fillRect(x, y, w * share, ROW - 1);
  }
}

// -- Drawing -------------------------------------------------------------------

// Calls box(node, x, width) for all that is at least NARROW wide: the zoomed
// node's callers in full width, then its callees.
function layout(box) {
  const above = [];
  for (let i = zoom; i >= 0; i = tree.parent[i]) above.unshift(i);
  for (const i of above) box(i, 0, width);
  const scale = tree.total[zoom] ? width / tree.total[zoom] : 0;
  const from = tree.left[zoom], stop = tree.end[zoom];
  for (let i = zoom + 1; i < stop;) {
    const w = tree.total[i] * scale;
    if (w < NARROW) { i = tree.end[i]; continue; }
    box(i, (tree.left[i] - from) * scale, w);
    i++;
  }
}

// Prepares boxes and the height of the graph; needed when the tree, the zoom
// or the width has changed.
function arrange() {
  boxes = [];
  layout((i, x, w) => {
    const d = tree.depth[i];
    (boxes[d] || (boxes[d] = [])).push({ i: i, x: x, w: w });
  });
  shownDepth = boxes.length;
  $("space").style.height = Math.max(height, shownDepth * ROW + 8) + "px";
}

function levelTop(d) {
  const whole = Math.max(height, shownDepth * ROW + 8);
  const top = icicle ? d * ROW + 4 : whole - (d + 1) * ROW - 4;
  return top - $("scroll").scrollTop;
}

function drawBox(b, y) {
  const dim = b.i !== zoom && tree.depth[b.i] < tree.depth[zoom];
  const w = Math.max(b.w - (b.w > 3 ? 1 : 0), NARROW);
  ctx.globalAlpha = dim ? 0.45 : 1;
  paint(b.i, b.x, y, w);
  if (b.i === hovered) {
    ctx.globalAlpha = 1;
    ctx.strokeStyle = dark.matches ? "#fff" : "#000";
    ctx.strokeRect(b.x + 0.5, y + 0.5, Math.max(w - 1, 1), ROW - 2);
  }
  if (b.w < TEXT_MIN) return;
  const room = Math.floor((b.w - 8) / charWidth), name = nodeName(b.i);
  if (room < 2) return;
  const hit = matches && b.i && matches[tree.name[b.i]];
  ctx.fillStyle = hit ? "#fff" : b.i || !dark.matches ? "#15181c" : "#e4e7ec";
  ctx.fillText(name.length <= room ? name : name.slice(0, room - 1) + "\u2026",
               b.x + 4, y + ROW / 2);
}

function draw() {
  ctx.clearRect(0, 0, width, height);
  boxes.forEach((level, d) => {
    const y = levelTop(d);
    if (y + ROW < 0 || y > height) return;
    for (const b of level) drawBox(b, y);
  });
  ctx.globalAlpha = 1;
}

let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; draw(); });
}

function resize() {
  const scroll = $("scroll"), ratio = window.devicePixelRatio || 1;
  const bottom = scroll.scrollHeight - scroll.clientHeight - scroll.scrollTop;
  width = scroll.clientWidth;
  height = scroll.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.font = FONT + "px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  ctx.textBaseline = "middle";
  charWidth = ctx.measureText("MMMMMMMMMM").width / 10;
  arrange();
  if (!icicle) scroll.scrollTop = scroll.scrollHeight - scroll.clientHeight - bottom;
  draw();
}

// Shows the root, or the zoomed node with one of its callers.
function scrollToZoom() {
  const scroll = $("scroll"), at = Math.max(tree.depth[zoom] - 1, 0) * ROW;
  scroll.scrollTop = icicle ? at : scroll.scrollHeight - scroll.clientHeight - at;
}

function show() {
  arrange();
  scrollToZoom();
  showMatched();
  draw();
}

// -- Zoom, search, orientation -------------------------------------------------

function zoomTo(i) {
  zoom = i;
  show();
}

function matcher(query) {
  const re = /^\/(.+)\/$/.exec(query);
  if (re) {
    try {
      const compiled = new RegExp(re[1], "i");
      return name => compiled.test(name);
    } catch (e) {
      return null;
    }
  }
  const lower = query.toLowerCase();
  return name => name.toLowerCase().includes(lower);
}

// Sum of the values in a matching frame or its callees.
function matchedTotal() {
  let sum = 0;
  for (let i = 1; i < tree.n;) {
    if (matches[tree.name[i]]) { sum += tree.total[i]; i = tree.end[i]; } else i++;
  }
  return sum;
}

function showMatched() {
  const out = $("matched");
  out.textContent = "";
  if (!matches) return;
  const sum = matchedTotal(), b = document.createElement("b");
  b.textContent = percent(sum, tree.total[0]);
  out.append("matched ", b, " (" + valueText(sum) + ")");
}

function search(query) {
  const test = query ? matcher(query) : null;
  matches = test ? Uint8Array.from(data.names, name => test(name) ? 1 : 0) : null;
  if (query && !test) $("matched").textContent = "no regular expression";
  else showMatched();
  redraw();
}

function setPressed(id, on) { $(id).setAttribute("aria-pressed", on); }

function setIcicle(on) {
  icicle = on;
  setPressed("icicle", on);
  show();
}

function setReversed(on) {
  if (on && !reversed) reversed = profile.reversed();
  tree = on ? reversed : forward;
  setPressed("reverse", on);
  hover(-1);
  zoomTo(0);
}

function setByState(on) {
  byState = on;
  setPressed("kinds", !on);
  legend();
  redraw();
}

function reset() {
  $("search").value = "";
  matches = null;
  hover(-1);
  zoomTo(0);
}

// -- Pointer -------------------------------------------------------------------

function boxAt(event) {
  const place = canvas.getBoundingClientRect();
  const x = event.clientX - place.left, y = event.clientY - place.top;
  for (let d = 0; d < boxes.length; d++) {
    const top = levelTop(d);
    if (y < top || y >= top + ROW) continue;
    const level = boxes[d] || [];
    let lo = 0, hi = level.length - 1;
    while (lo <= hi) {
      const mid = (lo + hi) >> 1, b = level[mid];
      if (x < b.x) hi = mid - 1;
      else if (x >= b.x + Math.max(b.w, 1)) lo = mid + 1;
      else return b.i;
    }
  }
  return -1;
}

// The rows of a node's tooltip: texts.
function tipRows(i) {
  function row(label, v) {
    const cells = [label, valueText(v), percent(v, tree.total[0])];
    if (zoom) cells.push(percent(v, tree.total[zoom]) + " of zoomed");
    return cells;
  }
  const rows = i ? [[kindText(i)]] : [];
  rows.push(row("self", tree.self[i]), row("total", tree.total[i]));
  if (data.states) {
    const off = tree.otherTotal[i];
    rows.push(row("on CPU", tree.total[i] - off), row("off CPU", off));
  }
  if (data.diff) {
    const whole = tree.total[0], before = tree.otherTotal[i];
    const change = tree.total[i] - before, points = whole ? 100 * change / whole : 0;
    const sign = points > 0.005 ? "+" : points < -0.005 ? "-" : "";
    if (data.amounts)
      rows.push(["before", valueText(before), sign + valueText(Math.abs(change))]);
    else
      rows.push(["before", percent(before, whole),
                 sign + Math.abs(points).toFixed(2) + " points"]);
  }
  return rows;
}

// Shows a name and rows of texts beside the pointer.
function showTip(title, rows, event) {
  const tip = $("tip");
  const name = document.createElement("b"), table = document.createElement("table");
  name.textContent = title;
  for (const cells of rows) {
    const row = table.insertRow();
    for (const text of cells) row.insertCell().textContent = text;
  }
  tip.replaceChildren(name, table);
  tip.style.display = "block";
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 8)) + "px";
  tip.style.top = Math.max(4, event.clientY + 18 + h > innerHeight ?
                           event.clientY - h - 10 : event.clientY + 18) + "px";
}

function hover(i, event) {
  if (i !== hovered) { hovered = i; redraw(); }
  canvas.style.cursor = i >= 0 ? "pointer" : "default";
  if (i < 0) {
    $("tip").style.display = "none";
    $("hover").textContent = "";
    return;
  }
  showTip(nodeName(i), tipRows(i), event);
  $("hover").textContent = nodeName(i) + " \u2014 self " +
    percent(tree.self[i], tree.total[0]) + ", total " +
    percent(tree.total[i], tree.total[0]);
}

// -- Start -------------------------------------------------------------------

// Where the arrow keys go with the root at the bottom; turned over, these differ.
const ARROWS = { ArrowUp: "callee", ArrowDown: "caller", ArrowLeft: "before",
                 ArrowRight: "after" };
const OPPOSITE = { callee: "caller", caller: "callee" };

function onKey(event) {
  const typing = event.target === $("search");
  if (event.ctrlKey || event.metaKey || event.altKey || $("report").open) return;
  if (event.key === "Escape") {
    $("search").blur();
    reset();
  } else if (typing) {
    return;
  } else if (event.key === "/") {
    $("search").focus();
    $("search").select();
  } else if (event.key === "i") {
    setIcicle(!icicle);
  } else if (event.key === "r") {
    setReversed(tree === forward);
  } else if (event.key === "k" && data.states) {
    setByState(!byState);
  } else if (event.key in ARROWS) {
    const towards = ARROWS[event.key];
    const to = trees.neighbour(tree, zoom, icicle && OPPOSITE[towards] || towards);
    if (to >= 0) zoomTo(to);
  } else {
    return;
  }
  event.preventDefault();
}

function legendItem(colour, label) {
  const item = document.createElement("span"), box = document.createElement("i");
  box.style.background = colour;
  item.append(box, label);
  $("legend").append(item);
}

function legend() {
  $("legend").textContent = "";
  if (byState) {
    const kinds = data.threads ? [ON, palette.RUNNABLE, OFF] : [ON, OFF];
    for (const kind of kinds) legendItem(palette.plain(kind), palette.label(kind));
    return;
  }
  if (data.diff) {
    legendItem(palette.changed(1, false), "more than before");
    legendItem(palette.changed(0, false), "the same");
    legendItem(palette.changed(-1, false), "less");
    return;
  }
  const present = new Set(data.kinds);
  for (let kind = 0; kind < palette.count; kind++) {
    if (present.has(kind)) legendItem(palette.plain(kind), palette.label(kind));
  }
}

$("total").textContent = valueText(forward.total[0]);
legend();
if (data.threads) threads.show(data.threads, (texts, event) => {
  if (texts) showTip(texts[0], [[texts[1]], ...texts[2]], event);
  else $("tip").style.display = "none";
});
canvas.addEventListener("mousemove", event => hover(boxAt(event), event));
canvas.addEventListener("mouseleave", () => hover(-1));
canvas.addEventListener("click", event => {
  const i = boxAt(event);
  if (i >= 0) { zoomTo(i); hover(boxAt(event), event); }
});
$("scroll").addEventListener("scroll", () => { hover(-1); redraw(); });
$("search").addEventListener("input", event => search(event.target.value));
$("icicle").addEventListener("click", () => setIcicle(!icicle));
$("reverse").addEventListener("click", () => setReversed(tree === forward));
$("kinds").hidden = !data.states;
$("kinds").addEventListener("click", () => setByState(!byState));
$("reset").addEventListener("click", reset);
$("about").addEventListener("click", () => $("report").showModal());
document.addEventListener("keydown", onKey);
dark.addEventListener("change", redraw);
new ResizeObserver(resize).observe($("scroll"));
resize();
scrollToZoom();
draw();
})();
]=]
