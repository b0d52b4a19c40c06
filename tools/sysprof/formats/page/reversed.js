// View of a flame graph with the leaf first.
//
// A node is made when kids() of its caller is first asked for, so the time and the memory depend on
// what is drawn. A node stands for a range of stacks. When it gets kids, its range is
// ordered by the names of the next frames, and each kid has a part of it.

const reversed = (function () {
"use strict";

// Orders ranges of stacks by their next frames: leaf and next are nodes of the tree from.
function makeRanges(from, names) {
  const starts = [];  // Node 0, too: a stack whose frames are all hidden is there.
  for (let i = 0; i < from.n; i++)
    if (from.self[i] || from.other && from.other[i]) starts.push(i);
  const n = starts.length, leaf = Int32Array.from(starts), next = leaf.slice();
  const leafCopy = new Int32Array(n), nextCopy = new Int32Array(n);
  const sizes = new Int32Array(names.texts.length);
  const nameOf = k => names.same[from.name[next[k]]];

  // Calls part(name, lo, hi) for each name of the next frames of stacks lo to below hi, in order.
  // Stacks that have none stand before them.
  function split(lo, hi, part) {
    const found = [];
    let at = lo;
    for (let k = lo; k < hi; k++) {
      if (!next[k]) { at++; continue; }
      if (!sizes[nameOf(k)]++) found.push(nameOf(k));
    }
    if (at === hi) return;
    found.sort((a, b) => names.rank[a] - names.rank[b]);
    const ends = found.map(name => {
      const size = sizes[name];
      sizes[name] = at;
      return at += size;
    });
    leafCopy.set(leaf.subarray(lo, hi), lo);
    nextCopy.set(next.subarray(lo, hi), lo);
    let ended = lo;
    for (let k = lo; k < hi; k++) {
      const frame = nextCopy[k];
      const to = frame ? sizes[names.same[from.name[frame]]]++ : ended++;
      leaf[to] = leafCopy[k];
      next[to] = frame;
    }
    let first = ended;
    found.forEach((name, i) => {
      sizes[name] = 0;
      part(name, first, ends[i]);
      first = ends[i];
    });
  }

  function goUp(lo, hi) {
    for (let k = lo; k < hi; k++) next[k] = from.parent[next[k]];
  }
  return { n: n, leaf: leaf, next: next, split: split, goUp: goUp };
}

// How many nodes the whole tree has whose names have a flag. above: the number of flags from a node
// of from up to the root.
function countNodes(from, names, flags, above) {
  const ranges = makeRanges(from, names), { next } = ranges, todo = [[0, ranges.n]];
  let count = 0;
  while (todo.length) {
    const [lo, hi] = todo.pop();
    if (hi - lo === 1) { count += above[next[lo]]; continue; }
    let some = false;
    for (let k = lo; k < hi && !some; k++) some = above[next[k]] > 0;
    if (!some) continue;
    ranges.split(lo, hi, (name, first, last) => {
      count += flags[name];
      ranges.goUp(first, last);
      todo.push([first, last]);
    });
  }
  return count;
}

function make(from, names) {
  const ranges = makeRanges(from, names), { leaf, next } = ranges;
  const ends = [], kids = [];  // By node: where its range ends, its kids if they are made.
  const begins = [];
  const t = { name: [], parent: [], depth: [], self: [], total: [], compiled: [],
              other: [], otherTotal: [], gone: [], readyTotal: from.ready ? [] : null };

  // Makes a node of the range whose next frames are those above it.
  function add(parent, name, lo, hi, compiled) {
    const node = t.name.push(name) - 1;
    t.parent.push(parent);
    t.depth.push(node ? t.depth[parent] + 1 : 0);
    begins.push(lo);
    ends.push(hi);
    let self = 0, total = 0, other = 0, otherTotal = 0, gone = 0, ready = 0;
    for (let k = lo; k < hi; k++) {
      const value = from.self[leaf[k]], second = from.other ? from.other[leaf[k]] : 0;
      total += value;
      otherTotal += second;
      if (from.gone) gone += from.gone[leaf[k]];
      if (from.ready) ready += from.ready[leaf[k]];
      if (!next[k]) { self += value; other += second; }
    }
    t.self.push(self);
    t.total.push(total);
    t.compiled.push(compiled);
    t.other.push(other);
    t.otherTotal.push(otherTotal);
    t.gone.push(gone);
    if (t.readyTotal) t.readyTotal.push(ready);
    return node;
  }

  function compiledPart(lo, hi) {
    let sum = 0;
    for (let k = lo; k < hi; k++)
      if (names.compiled[from.name[next[k]]]) sum += from.self[leaf[k]];
    return sum;
  }

  t.kids = node => {
    if (kids[node]) return kids[node];
    const list = kids[node] = [];
    ranges.split(begins[node], ends[node], (name, lo, hi) => {
      const compiled = compiledPart(lo, hi);
      ranges.goUp(lo, hi);
      list.push(add(node, name, lo, hi, compiled));
    });
    return list;
  };

  t.holder = node => {
    const has = new Uint8Array(from.n);
    for (let k = begins[node]; k < ends[node]; k++) has[leaf[k]] = 1;
    return k => has[trees.nodeOf(from, k)] === 1;
  };

  // As of the forward tree.
  t.mark = flags => {
    const above = new Int32Array(from.n);
    for (let i = 1; i < from.n; i++) above[i] = above[from.parent[i]] + flags[names.same[from.name[i]]];
    return {
      count: countNodes(from, names, flags, above),
      below: node => {
        if (kids[node]) return kids[node].length > 0;
        for (let k = begins[node]; k < ends[node]; k++) if (above[next[k]]) return true;
        return false;
      }
    };
  };
  add(-1, -1, 0, ranges.n, 0);
  return t;
}

return { make: make };
})();
