----------------------------------------------------------------------------
-- Trees of a flame graph, in JavaScript.
--
-- A tree is arrays by number of node. Parents stand before children, so the numbers
-- after a node are its descendants. Node 0 is the whole profile. No function recurses:
-- stacks can be deep.
----------------------------------------------------------------------------

return [=[
const trees = (function () {
"use strict";

// depth, name, self, total, compiled (the part of total in compiled code of this
// very frame), other and otherTotal (a second value beside self and total: that of what
// the profile is compared with, or the part off CPU), parent, end (number after the last descendant), left (what stands
// before it on its level); all by number of node.
function makeTree(n) {
  return {
    n: n, depth: new Int32Array(n), name: new Int32Array(n).fill(-1),
    parent: new Int32Array(n).fill(-1), end: new Int32Array(n),
    self: new Float64Array(n), total: new Float64Array(n),
    compiled: new Float64Array(n), left: new Float64Array(n),
    other: new Float64Array(n), otherTotal: new Float64Array(n)
  };
}

// Completes a tree with known depth, name and self.
function finishTree(t) {
  const open = [];
  for (let i = 0; i < t.n; i++) {
    while (open.length > t.depth[i]) t.end[open.pop()] = i;
    t.parent[i] = open.length ? open[open.length - 1] : -1;
    open.push(i);
  }
  while (open.length) t.end[open.pop()] = t.n;
  for (let i = t.n - 1; i >= 0; i--) {
    t.total[i] += t.self[i];
    t.otherTotal[i] += t.other[i];
    if (!i) continue;
    t.total[t.parent[i]] += t.total[i];
    t.otherTotal[t.parent[i]] += t.otherTotal[i];
  }
  const used = new Float64Array(t.n);
  for (let i = 1; i < t.n; i++) {
    const p = t.parent[i];
    t.left[i] = t.left[p] + used[p];
    used[p] += t.total[i];
  }
  return t;
}

// The data of the page: depth, name and self of each node, and the second value if there is
// one. A function that is also compiled is two nodes with two names there.
function parse(flat, hasOther) {
  const items = hasOther ? 4 : 3, t = makeTree(flat.length / items + 1);
  for (let i = 1, k = 0; i < t.n; i++, k += items) {
    t.depth[i] = flat[k];
    t.name[i] = flat[k + 1];
    t.self[i] = flat[k + 2];
    if (hasOther) t.other[i] = flat[k + 3];
  }
  return finishTree(t);
}

// A tree while it grows.
function makeNode(name) {
  return { name: name, self: 0, compiled: 0, other: 0, kids: null };
}

function child(node, name) {
  if (!node.kids) node.kids = new Map();
  let kid = node.kids.get(name);
  if (!kid) {
    kid = makeNode(name);
    node.kids.set(name, kid);
  }
  return kid;
}

// The grown tree with siblings in the order of their names.
function flatten(root, names) {
  const list = [], todo = [[root, 0]];
  while (todo.length) {
    const item = todo.pop();
    list.push(item);
    if (!item[0].kids) continue;
    const kids = [...item[0].kids.values()];
    kids.sort((a, b) => names[a.name] < names[b.name] ? 1 : -1);
    for (const kid of kids) todo.push([kid, item[1] + 1]);
  }
  const t = makeTree(list.length);
  list.forEach(([node, depth], i) => {
    t.depth[i] = depth;
    t.name[i] = node.name;
    t.self[i] = node.self;
    t.compiled[i] = node.compiled;
    t.other[i] = node.other;
  });
  return finishTree(t);
}

// names, compiled (1 or 0) and same (number of the first name of the same text)
// are by number of name. hasOther: the data have a second value. Returns functions that
// make the two trees.
function read(flat, names, compiled, same, hasOther) {
  const data = parse(flat, hasOther);

  function forward() {
    const path = [makeNode(-1)];
    for (let i = 1; i < data.n; i++) {
      const node = child(path[data.depth[i] - 1], same[data.name[i]]);
      path[data.depth[i]] = node;
      node.self += data.self[i];
      node.other += data.other[i];
      if (compiled[data.name[i]]) node.compiled += data.total[i];
    }
    return flatten(path[0], names);
  }

  // The same stacks with the leaf first.
  function reversed() {
    const root = makeNode(-1);
    for (let i = 1; i < data.n; i++) {
      if (data.self[i] === 0 && data.other[i] === 0) continue;
      let node = root;
      for (let up = i; up > 0; up = data.parent[up]) {
        node = child(node, same[data.name[up]]);
        if (compiled[data.name[up]]) node.compiled += data.self[i];
      }
      node.self += data.self[i];
      node.other += data.other[i];
    }
    return flatten(root, names);
  }

  return { forward: forward, reversed: reversed };
}

// Returns the node beside another one: its "caller", the "callee" with the largest
// total, what is "before" or "after" it on its level below the same caller; -1 if
// there is none.
function neighbour(t, node, where) {
  const up = t.parent[node];
  let found = -1, last = -1;
  if (where === "caller") return up;
  const parent = where === "callee" ? node : up;
  if (parent < 0) return -1;
  for (let c = parent + 1; c < t.end[parent]; c = t.end[c]) {
    if (!t.total[c]) continue;
    if (where === "callee" && (found < 0 || t.total[c] > t.total[found])) found = c;
    if (where === "before" && c === node) found = last;
    if (where === "after" && last === node) found = c;
    last = c;
  }
  return found;
}

return { read: read, neighbour: neighbour };
})();
]=]
