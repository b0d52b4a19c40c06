// Trees of a flame graph: the data as they are, shaped, and root first.
//
// A tree is typed arrays by number of node. Parents stand before children, so the numbers
// after a node are its descendants. Node 0 is the whole profile. No function recurses:
// stacks can be deep. A view's tree has name, parent, depth, self, total, compiled, otherTotal, readyTotal and
// gone by node, kids(node), and holder(node), which tells nodes of the data that it stands for; reversed.js makes the
// other one.

const trees = (function () {
"use strict";

const REPEAT_MAX = 8;  // Frames that a repeat has at most, to be folded.

// name, parent, end (number after the last descendant), self, total; other: a second value beside
// self, that of what the profile is compared with, or the part off CPU. ready: the part of it that is
// runnable. hasOther, hasReady: there is one.
function makeTree(n, hasOther, hasReady) {
  const numbers = has => has ? new Float64Array(n) : null;
  return {
    n: n, name: new Int32Array(n).fill(-1), parent: new Int32Array(n).fill(-1),
    self: new Float64Array(n), total: new Float64Array(n),
    other: numbers(hasOther), otherTotal: numbers(hasOther),
    ready: numbers(hasReady), readyTotal: numbers(hasReady)
  };
}

// Adds the values of all nodes to those of their callers. A node stands after its caller.
function addUp(sums, parent) {
  for (let i = sums.length - 1; i > 0; i--) sums[parent[i]] += sums[i];
}

function sumUp(t) {
  for (const [own, total] of [[t.self, t.total], [t.other, t.otherTotal], [t.ready, t.readyTotal]]) {
    if (!own) continue;
    total.set(own);
    addUp(total, t.parent);
  }
  return t;
}

// Notes what is off CPU in nodes of a name, that of what is runnable, and adds all up.
function finish(t, ready) {
  if (t.ready) for (let i = 1; i < t.n; i++) if (t.name[i] === ready) t.ready[i] = t.other[i];
  return sumUp(t);
}

// The same tree with other values: fill(self, other) adds them, by node. ready: as of parse().
function refill(from, ready, fill) {
  const t = makeTree(from.n, from.other !== null, from.ready !== null);
  t.name = from.name;
  t.parent = from.parent;
  fill(t.self, t.other);
  return finish(t, ready);
}

// The data of the page: depth, name and self of each node, and the second value if there is
// one. A function that is also compiled is two nodes with two names there. ready: the number of the name of
// what is runnable, or nothing.
function parse(flat, hasOther, ready) {
  const items = hasOther ? 4 : 3, t = makeTree(flat.length / items + 1, hasOther, hasOther && ready >= 0);
  const path = [0];
  for (let i = 1, k = 0; i < t.n; i++, k += items) {
    const depth = flat[k];
    t.parent[i] = path[depth - 1];
    path[depth] = i;
    t.name[i] = flat[k + 1];
    t.self[i] = flat[k + 2];
    if (hasOther) t.other[i] = flat[k + 3];
  }
  return finish(t, ready);
}

// Nodes while they are made: child(node, name) finds or makes one.
function makeNodes(max) {
  const parent = new Int32Array(max), name = new Int32Array(max);
  let places = 16;
  while (places < 2 * max) places *= 2;
  const index = new Int32Array(places), mask = places - 1;
  const nodes = { n: 1, parent: parent, name: name, child: child };
  parent[0] = name[0] = -1;

  function child(node, called) {
    let at = Math.imul(Math.imul(node, 0x9e3779b1) ^ called, 0x85ebca6b);
    at = (at ^ at >>> 15) & mask;
    for (let c = index[at]; c; c = index[at]) {
      if (parent[c] === node && name[c] === called) return c;
      at = at + 1 & mask;
    }
    const made = nodes.n++;
    index[at] = made;
    parent[made] = node;
    name[made] = called;
    return made;
  }
  return nodes;
}

// Returns the numbers that nodes get: parents first, siblings in the order of rank, by name.
function preorder(nodes, rank) {
  const n = nodes.n, { parent, name } = nodes;
  const head = new Int32Array(rank.length), first = new Int32Array(n), next = new Int32Array(n);
  for (let i = 1; i < n; i++) {
    const r = rank[name[i]];
    next[i] = head[r];
    head[r] = i;
  }
  for (let r = head.length - 1; r >= 0; r--) {
    for (let i = head[r], after; i; i = after) {
      after = next[i];
      next[i] = first[parent[i]];
      first[parent[i]] = i;
    }
  }
  const at = new Int32Array(n);
  for (let i = first[0], number = 1; i; number++) {
    at[i] = number;
    if (first[i]) { i = first[i]; continue; }
    while (i && !next[i]) i = Math.max(parent[i], 0);
    i = next[i];
  }
  return at;
}

// The node of a called function, if its call is folded: the frames up to node and this one end
// with a repeat of at most REPEAT_MAX frames, which is left out.
function foldedInto(nodes, same, node, called) {
  const { parent, name } = nodes;
  let up = node;
  for (let k = 1; k <= REPEAT_MAX && up > 0; k++, up = parent[up]) {
    if (same[name[up]] !== same[called]) continue;
    let a = node, b = parent[up], left = k - 1;
    while (left && b > 0 && same[name[a]] === same[name[b]]) {
      a = parent[a];
      b = parent[b];
      left--;
    }
    if (!left) return up;
  }
  return -1;
}

// Merges the nodes of a tree into those that place(nodes, node of the caller, name) gives.
// Returns the new tree and the new number of each node.
function merge(from, rank, place) {
  const nodes = makeNodes(from.n), to = new Int32Array(from.n);
  for (let i = 1; i < from.n; i++) to[i] = place(nodes, to[from.parent[i]], from.name[i]);
  const at = preorder(nodes, rank), t = makeTree(nodes.n, from.other !== null, from.ready !== null);
  for (let i = 1; i < nodes.n; i++) {
    t.name[at[i]] = nodes.name[i];
    t.parent[at[i]] = at[nodes.parent[i]];
  }
  for (let i = 0; i < from.n; i++) {
    to[i] = at[to[i]];
    t.self[to[i]] += from.self[i];
    if (from.other) t.other[to[i]] += from.other[i];
    if (from.ready) t.ready[to[i]] += from.ready[i];
  }
  return [sumUp(t), to];
}

// What the views need to know of names, by number: names (texts), compiled (1 or 0), same (number
// of the first name of the same text), rank (place in the order of names).
function readNames(names, kinds, compiledKind) {
  const first = new Map(), order = names.map((_, i) => i);
  names.forEach((name, i) => { if (!first.has(name)) first.set(name, i); });
  order.sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b);
  const rank = new Int32Array(names.length);
  order.forEach((i, place) => { rank[i] = place; });
  return {
    texts: names, number: first, rank: rank, same: Int32Array.from(names, name => first.get(name)),
    compiled: Uint8Array.from(kinds, kind => kind === compiledKind ? 1 : 0)
  };
}

// The data with frames hidden (1 by number of name), which then belong to their callers, and
// repeats folded if asked for.
function shape(data, names, hidden, folded) {
  if (!hidden && !folded) return data;
  const same = names.same;
  const [t, to] = merge(data, names.rank, (nodes, node, called) => {
    if (hidden && hidden[same[called]]) return node;
    const into = folded ? foldedInto(nodes, same, node, called) : -1;
    return into >= 0 ? into : nodes.child(node, called);
  });
  t.of = to;  // By node of the data.
  return t;
}

// The node of a shaped tree for a node of the data.
const nodeOf = (from, k) => from.of ? from.of[k] : k;

// In a comparison: gone is the part of the base in stacks that are in the base alone, by node.
// The nodes of from get theirs alone, without callees.
function addGone(t, from, to) {
  t.gone = Float64Array.from(t.other, (v, i) => t.self[i] ? 0 : v);
  addUp(t.gone, t.parent);
  from.gone = Float64Array.from(from.other, (v, i) => t.self[to[i]] ? 0 : v);
}

// The view with the root first: compiled and interpreted code of a function are one node; compiled
// is the part of its total in compiled code of this very frame.
function forward(from, names, isDiff) {
  const same = names.same;
  const [t, to] = merge(from, names.rank, (nodes, node, called) => nodes.child(node, same[called]));
  t.depth = new Int32Array(t.n);
  t.end = new Int32Array(t.n);
  t.compiled = new Float64Array(t.n);
  for (let i = 1; i < t.n; i++) t.depth[i] = t.depth[t.parent[i]] + 1;
  for (let i = t.n - 1; i >= 0; i--) {
    t.end[i] = Math.max(t.end[i], i + 1);
    if (i) t.end[t.parent[i]] = Math.max(t.end[t.parent[i]], t.end[i]);
  }
  for (let i = 1; i < from.n; i++)
    if (names.compiled[from.name[i]]) t.compiled[to[i]] += from.total[i];
  if (isDiff) addGone(t, from, to);

  t.holder = node => k => to[nodeOf(from, k)] >= node && to[nodeOf(from, k)] < t.end[node];

  // A repeat that is folded may leave nodes without any value.
  const isFilled = i => t.total[i] > 0 || t.other !== null && t.otherTotal[i] > 0;
  t.kids = node => {
    const list = [];
    for (let c = node + 1; c < t.end[node]; c = t.end[c]) if (isFilled(c)) list.push(c);
    return list;
  };
  // For a search, flags is 1 by number of a name that matches: the number of nodes, and whether one
  // is below a node.
  t.mark = flags => {
    const before = new Int32Array(t.n + 1);
    for (let i = 1; i < t.n; i++) before[i + 1] = before[i] + (isFilled(i) && flags[t.name[i]]);
    return { count: before[t.n], below: i => before[t.end[i]] > before[i + 1] };
  };
  // Sum of the values in a matching frame or its callees.
  t.within = flags => {
    let sum = 0;
    for (let i = 1; i < t.n;) {
      if (flags[t.name[i]]) { sum += t.total[i]; i = t.end[i]; } else i++;
    }
    return sum;
  };
  return t;
}

// Names from the root to a node, and the deepest node whose names begin a path.
function pathOf(t, node) {
  const path = [];
  for (let i = node; i > 0; i = t.parent[i]) path.push(t.name[i]);
  return path.reverse();
}

function find(t, path) {
  let node = 0;
  for (const name of path) {
    const kid = t.kids(node).find(c => t.name[c] === name);
    if (kid === undefined) break;
    node = kid;
  }
  return node;
}

// Returns the node beside another one: its "caller", the "callee" with the largest
// size, what is "before" or "after" it on its level below the same caller; -1 if
// there is none. size(node) is 0 for what has no box.
function neighbour(t, node, where, size) {
  const up = t.parent[node];
  if (where === "caller") return up;
  const parent = where === "callee" ? node : up;
  if (parent < 0) return -1;
  const kids = t.kids(parent).filter(c => size(c) > 0), at = kids.indexOf(node);
  if (where === "callee") return kids.reduce((a, c) => a < 0 || size(c) > size(a) ? c : a, -1);
  const beside = kids[where === "before" ? at - 1 : at + 1];
  return at < 0 || beside === undefined ? -1 : beside;
}

return { parse: parse, refill: refill, readNames: readNames, shape: shape, nodeOf: nodeOf, forward: forward, find: find,
         pathOf: pathOf, neighbour: neighbour };
})();
