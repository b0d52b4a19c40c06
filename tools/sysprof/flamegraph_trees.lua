----------------------------------------------------------------------------
-- Sysprof reader: the trees in the script of a flame graph's page.
--
-- A tree is arrays by number of node, parents before children, so that what
-- is below a node are the numbers that follow it; node 0 is the whole profile.
-- No function recurses: stacks can be deep.
----------------------------------------------------------------------------

return [=[
const trees = (function () {
"use strict";

// depth, name, self, total, parent, end (number after the last descendant),
// left (what stands before it on its level); all by number of node.
function makeTree(n) {
  return {
    n: n, depth: new Int32Array(n), name: new Int32Array(n).fill(-1),
    parent: new Int32Array(n).fill(-1), end: new Int32Array(n),
    self: new Float64Array(n), total: new Float64Array(n),
    left: new Float64Array(n)
  };
}

// Completes a tree of which depth, name and self are known.
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
    if (i) t.total[t.parent[i]] += t.total[i];
  }
  const used = new Float64Array(t.n);
  for (let i = 1; i < t.n; i++) {
    const p = t.parent[i];
    t.left[i] = t.left[p] + used[p];
    used[p] += t.total[i];
  }
  return t;
}

// From the data of the page: depth, name and self of each node.
function read(flat) {
  const t = makeTree(flat.length / 3 + 1);
  for (let i = 1, k = 0; i < t.n; i++, k += 3) {
    t.depth[i] = flat[k];
    t.name[i] = flat[k + 1];
    t.self[i] = flat[k + 2];
  }
  return finishTree(t);
}

// The same stacks with the leaf first.
function reverse(t, names) {
  const root = { name: -1, self: 0, kids: new Map() };
  let n = 1;
  for (let i = 1; i < t.n; i++) {
    if (t.self[i] === 0) continue;
    let at = root;
    for (let up = i; up > 0; up = t.parent[up]) {
      let kid = at.kids.get(t.name[up]);
      if (!kid) {
        kid = { name: t.name[up], self: 0, kids: new Map() };
        at.kids.set(t.name[up], kid);
        n++;
      }
      at = kid;
    }
    at.self += t.self[i];
  }
  const r = makeTree(n), todo = [[root, 0]];
  for (let i = 0; todo.length; i++) {
    const [node, depth] = todo.pop();
    r.depth[i] = depth;
    r.name[i] = node.name;
    r.self[i] = node.self;
    const kids = [...node.kids.values()];
    kids.sort((a, b) => names[a.name] < names[b.name] ? 1 : -1);
    for (const kid of kids) todo.push([kid, depth + 1]);
  }
  return finishTree(r);
}

return { read: read, reverse: reverse };
})();
]=]
