// Boxes of a flame graph on a canvas.
//
// Draws only visible boxes, so its speed does not depend on the number of nodes. Draws any tree
// of the page's views; what a box looks like is up to the caller.

const graphs = (function () {
"use strict";

const ROW = 18, FONT = 12, NARROW = 0.4, TEXT_MIN = 22;

// look: size(node), parts(node) -> list of { share of the width, fill style } from the left,
// label(node) -> { name, colour, share of the width that it may take }, dark() and icicle().
function make(canvas, scroll, space, look) {
  const ctx = canvas.getContext("2d");
  let tree = null, zoom = 0;
  let hovered = -1, outlined = -1;
  let width = 0, height = 0; // of the canvas in CSS pixels
  let boxes = [];            // what was drawn: node, x, width; by level
  let charWidth = 7, drawing = false;
  let below = 0;             // Pixels of the graph below what is seen.

  // Calls box(node, x, width) for all that is at least NARROW wide: the zoomed
  // node's callers in full width, then its callees.
  function layout(box) {
    const above = [];
    for (let i = tree.parent[zoom]; i >= 0; i = tree.parent[i]) above.unshift(i);
    for (const i of above) box(i, 0, width);
    const whole = look.size(zoom), scale = whole ? width / whole : 0;
    const todo = [[zoom, 0]];
    while (todo.length) {
      const [i, left] = todo.pop(), w = i === zoom ? width : look.size(i) * scale;
      box(i, left, w);
      const kids = [];
      let x = left;
      for (const c of tree.kids(i)) {
        const wide = look.size(c) * scale;
        if (wide >= NARROW) kids.push([c, x]);
        x += wide;
      }
      for (let k = kids.length - 1; k >= 0; k--) todo.push(kids[k]);
    }
  }

  const whole = () => Math.max(height, boxes.length * ROW + 8);

  // Prepares boxes and the height of the graph; needed when the tree, the zoom
  // or the width has changed.
  function arrange() {
    boxes = [];
    layout((i, x, w) => {
      const d = tree.depth[i];
      (boxes[d] || (boxes[d] = [])).push({ i: i, x: x, w: w });
    });
    space.style.height = whole() + "px";
  }

  // Distance of a level from the top of the whole graph.
  const placeOf = d => look.icicle() ? d * ROW + 4 : whole() - (d + 1) * ROW - 4;
  const levelTop = d => placeOf(d) - scroll.scrollTop;

  function drawName(b, y) {
    const [name, ink, share] = look.label(b.i), room = Math.floor((b.w * share - 8) / charWidth);
    if (room < 2) return;
    ctx.fillStyle = ink;
    ctx.fillText(name.length <= room ? name : name.slice(0, room - 1) + "\u2026",
                 b.x + 4, y + ROW / 2);
  }

  function drawBox(b, y) {
    const dim = b.i !== zoom && tree.depth[b.i] < tree.depth[zoom];
    const w = Math.max(b.w - (b.w > 3 ? 1 : 0), NARROW);
    let x = b.x;
    ctx.globalAlpha = dim ? 0.45 : 1;
    for (const [share, style] of look.parts(b.i)) {
      ctx.fillStyle = style;
      ctx.fillRect(x, y, w * share, ROW - 1);
      x += w * share;
    }
    ctx.globalAlpha = 1;
    if (b.i === hovered || b.i === outlined) {
      const wide = b.i === outlined ? 2 : 1;
      ctx.lineWidth = wide;
      ctx.strokeStyle = look.dark() ? "#fff" : "#000";
      ctx.strokeRect(b.x + wide / 2, y + wide / 2, Math.max(w - wide, 1), ROW - 1 - wide);
    }
    ctx.globalAlpha = dim ? 0.45 : 1;
    if (b.w >= TEXT_MIN) drawName(b, y);
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

  function redraw() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; draw(); });
  }

  function resize() {
    const ratio = window.devicePixelRatio || 1;
    const bottom = below;
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
    if (!look.icicle()) scroll.scrollTop = scroll.scrollHeight - scroll.clientHeight - bottom;
    draw();
  }

  // Shows a node in full width, with one of its callers.
  function show(shown, node) {
    if (shown !== tree) hovered = outlined = -1;
    tree = shown;
    zoom = node;
    arrange();
    const at = Math.max(tree.depth[zoom] - 1, 0) * ROW;
    scroll.scrollTop = look.icicle() ? at : scroll.scrollHeight - scroll.clientHeight - at;
    below = scroll.scrollHeight - scroll.clientHeight - scroll.scrollTop;
    draw();
  }

  // The width of a node's box; 0 if it has none.
  function widthOf(node) {
    const box = (boxes[tree.depth[node]] || []).find(b => b.i === node);
    return box ? box.w : 0;
  }

  function outline(node) {
    outlined = node;
    if (node >= 0) {
      const top = placeOf(tree.depth[node]), seen = scroll.scrollTop;
      if (top < seen || top + ROW > seen + height) scroll.scrollTop = top - height / 2;
    }
    redraw();
  }

  function hover(node) {
    if (node === hovered) return;
    hovered = node;
    redraw();
  }

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

  scroll.addEventListener("scroll", () => {
    below = scroll.scrollHeight - scroll.clientHeight - scroll.scrollTop;
    redraw();
  });
  return { show: show, resize: resize, redraw: redraw, outline: outline, hover: hover,
           boxAt: boxAt, widthOf: widthOf };
}

return { make: make };
})();
