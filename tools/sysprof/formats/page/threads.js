// States of threads over time in a flame graph's page.
//
// One row for each thread, with the states of a step on top of each other: on CPU, runnable,
// waiting. The data are { step (microseconds), left_out, list of { name, shares } }; shares are
// percent of a step, three for each. Dragging over the rows selects a time.

const threads = (function () {
"use strict";

const TOP = 4, ROW = 18, AXIS = 18, NAMES_MAX = 170, TICKS = 8, MOVED = 3;  // TOP: room above the first row.
const SHOWN = [["on CPU", 0, palette.ON], ["runnable", 2, palette.RUNNABLE],
               ["waiting", 1, palette.OFF]];

const $ = id => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
let data = null, steps = 0, width = 0, left = NAMES_MAX;  // left: where the rows begin.
let marked = [], start = null;  // The time that is shown; where dragging began.

function seconds(us) {
  const s = us / 1e6;
  return s.toFixed(s < 10 ? 3 : s < 100 ? 2 : 1) + " s";
}

// Microseconds at a place of the page; at least 0.
function timeAt(event) {
  const x = event.clientX - $("times").getBoundingClientRect().left - left;
  return Math.min(Math.max(x / (width - left), 0), 1) * steps * data.step;
}

function xOf(step) { return left + (width - left) * step / steps; }

function drawRow(ctx, thread, y) {
  for (let i = 0; i < steps; i++) {
    const x = Math.round(xOf(i)), w = Math.round(xOf(i + 1)) - x;
    let bottom = y + ROW - 2;
    for (const [, place, kind] of SHOWN) {
      const h = Math.min(thread.shares[3 * i + place], 100) / 100 * (ROW - 4);
      ctx.fillStyle = palette.plain(kind, dark.matches);
      ctx.fillRect(x, Math.max(bottom - h, y + 2), w, Math.min(h, bottom - y - 2));
      bottom = Math.max(bottom - h, y + 2);
    }
  }
  ctx.fillStyle = dark.matches ? "#e4e7ec" : "#1f2328";
  ctx.fillText(thread.name, 8, y + ROW / 2, left - 16);
}

// A round distance of ticks: 1, 2 or 5 times a power of ten.
function tickStep(span) {
  const power = Math.pow(10, Math.floor(Math.log10(span / TICKS)));
  return power * [1, 2, 5, 10].find(n => n * power * TICKS >= span);
}

function drawAxis(ctx, y) {
  const span = steps * data.step, step = tickStep(span);
  ctx.fillStyle = dark.matches ? "#9aa3b0" : "#5d6570";
  for (let t = 0; t < span; t += step) {
    const x = xOf(t / data.step);
    ctx.fillRect(x, y, 1, 4);
    if (x < width - 50) ctx.fillText(parseFloat((t / 1e6).toPrecision(6)) + " s", x + 3, y + AXIS / 2);
  }
  if (data.left_out) ctx.fillText("and " + data.left_out + " more", 8, y + AXIS / 2, left - 16);
}

// What is not shown fades.
function drawMarked(ctx, height) {
  const [from, to] = marked.map(us => Math.min(xOf(us / data.step), width));
  ctx.fillStyle = dark.matches ? "#16181dc0" : "#ffffffc0";
  ctx.fillRect(left, 0, from - left, height);
  ctx.fillRect(to, 0, width - to, height);
  ctx.fillStyle = dark.matches ? "#7aa2f7" : "#2563eb";
  ctx.fillRect(from - 1, 0, 1, height + 4);
  ctx.fillRect(to, 0, 1, height + 4);
}

// Shows which time the graph is of: microseconds from and to, or none.
function mark(range) {
  if (!data || range.join() === marked.join()) return;
  marked = range;
  draw();
}

// select(range) gets what the user drags over, or none for a click.
function dragging(select) {
  const canvas = $("times");
  const range = event => [timeAt(start), timeAt(event)].sort((a, b) => a - b);
  let before = [];
  canvas.style.cursor = "crosshair";
  canvas.addEventListener("pointerdown", event => {
    const x = event.clientX - canvas.getBoundingClientRect().left;
    if (event.button !== 0 || x < left) return;
    start = event;
    before = marked;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => { if (start) mark(range(event)); });
  canvas.addEventListener("pointercancel", () => {
    start = null;
    mark(before);
  });
  canvas.addEventListener("pointerup", event => {
    if (!start) return;
    const isClick = Math.abs(event.clientX - start.clientX) < MOVED, selected = isClick ? [] : range(event);
    start = null;
    mark(before);
    select(selected);
  });
}

function draw() {
  const canvas = $("times"), ctx = canvas.getContext("2d"), ratio = devicePixelRatio || 1;
  const height = TOP + data.list.length * ROW + AXIS;
  width = $("threads").clientWidth;
  left = Math.min(NAMES_MAX, Math.round(width * 0.3));
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  ctx.textBaseline = "middle";
  data.list.forEach((thread, i) => drawRow(ctx, thread, TOP + i * ROW));
  drawAxis(ctx, TOP + data.list.length * ROW);
  if (marked.length) drawMarked(ctx, TOP + data.list.length * ROW);
}

// Returns the name of the thread and its shares where the pointer is, as texts.
function textsAt(event) {
  const place = $("times").getBoundingClientRect();
  const thread = data.list[Math.floor((event.clientY - place.top - TOP) / ROW)];
  const i = Math.floor((event.clientX - place.left - left) / (width - left) * steps);
  if (!thread || i < 0 || i >= steps) return null;
  const rows = SHOWN.map(([name, at]) => [name, thread.shares[3 * i + at] + " %"]);
  return [thread.name, seconds(i * data.step) + " to " + seconds((i + 1) * data.step), rows];
}

// tip(texts, event) shows a tooltip; hides it for null. select: of dragging(), or null.
function show(list, tip, select) {
  data = list;
  steps = data.list.length ? data.list[0].shares.length / 3 : 0;
  if (!steps) return;
  $("threads").style.display = "block";
  $("times").addEventListener("mousemove", event => tip(textsAt(event), event));
  $("times").addEventListener("mouseleave", event => tip(null, event));
  if (select) dragging(select);
  dark.addEventListener("change", draw);
  addEventListener("resize", draw);
  draw();
}

return { show: show, mark: mark };
})();
