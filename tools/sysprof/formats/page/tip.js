// Texts of a flame graph's page: what is known of a box, the tooltip, the legend.
//
// Names get to the page only as text, never as HTML.

const tips = (function () {
"use strict";

const LEVEL = "95 %";  // Of intervals.

const $ = id => document.getElementById(id);

function percent(v, whole) {
  return (whole ? 100 * v / whole : 0).toFixed(2) + " %";
}

// Kind of a node, as text; Lua, whether it is compiled or not, with the share of compiled code.
function kindText(kind, share) {
  if (share === 0) return palette.label(kind === palette.COMPILED ? palette.LUA : kind);
  if (share === 1) return palette.label(palette.COMPILED);
  return "Lua, " + percent(share, 1) + " compiled";
}

// The change of a node since the base. intervals: as of rowsOf().
function changeRows(data, tree, i, valueText, intervals) {
  const whole = tree.total[0], before = tree.otherTotal[i];
  const change = tree.total[i] - before, points = whole ? 100 * change / whole : 0, gone = tree.gone[i];
  const signed = (v, text) => (text(Math.abs(v)) === text(0) ? "" : v > 0 ? "+" : "-") + text(Math.abs(v));
  const rows = [data.amounts ?
    ["before", valueText(before), signed(change, valueText)] :
    ["before", percent(before, whole), signed(points, v => v.toFixed(2)) + " points"]];
  if (intervals && intervals.before) {
    const text = data.amounts ? valueText : v => percent(v, whole), [low, high] = intervals.change;
    rows.push([LEVEL, spreads.text(...intervals.before, before, text), spreads.text(low, high, change, text)]);
    if (low < 0 && high > 0) rows.push(["", "", "~: no more than chance"]);
  }
  if (gone) rows.push(["gone", data.amounts ? valueText(gone) : percent(gone, whole)]);
  return rows;
}

// The rows of a node's tooltip: texts. compiled: its share of compiled code. intervals: the ends of those of its total,
// now and before, and of the change; or null.
function rowsOf(data, tree, zoom, i, compiled, valueText, intervals) {
  function row(label, v) {
    const cells = [label, valueText(v), percent(v, tree.total[0])];
    if (zoom) cells.push(percent(v, tree.total[zoom]) + " of zoomed");
    return cells;
  }
  const rows = i ? [[kindText(data.kinds[tree.name[i]], compiled)]] : [];
  rows.push(row("self", tree.self[i]), row("total", tree.total[i]));
  const share = v => percent(v, tree.total[0]);
  const text = v => intervals ? spreads.text(...intervals.now, tree.total[i], v) : "";
  if (text(valueText)) rows.push([LEVEL, text(valueText), text(share)]);
  if (data.states) {
    const off = tree.otherTotal[i];
    rows.push(row("on CPU", tree.total[i] - off), row("off CPU", off));
    if (tree.readyTotal && tree.readyTotal[i]) rows.push(row("of it runnable", tree.readyTotal[i]));
  }
  return data.diff ? rows.concat(changeRows(data, tree, i, valueText, intervals)) : rows;
}

function hide() { $("tip").style.display = "none"; }

// Shows a name and rows of texts beside the pointer, below the page's head.
function show(title, rows, event) {
  const tip = $("tip"), top = document.querySelector("header").offsetHeight + 4;
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
  tip.style.top = Math.max(top, event.clientY + 18 + h > innerHeight ?
                           event.clientY - h - 10 : event.clientY + 18) + "px";
}

// items: colours and what they mean.
function legend(items) {
  $("legend").replaceChildren(...items.map(([colour, label]) => {
    const item = document.createElement("span"), box = document.createElement("i");
    box.style.background = colour;
    item.append(box, label);
    return item;
  }));
}

return { percent: percent, rowsOf: rowsOf, show: show, hide: hide, legend: legend };
})();
