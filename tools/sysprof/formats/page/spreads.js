// Spread of samples: the 95 % intervals of boxes, as sysprof.model.spread and sysprof.show.errors have them.
//
// sysprof.formats.flamegraph_spread describes the data.

const spreads = (function () {
"use strict";

const ALONE = Math.log(0.025), LOPSIDED = 0.25, STEPS = 3e7;

function parse(data) {
  const its = { n: data.n, sum: data.sum * data.scale, unseen: data.unseen * data.scale, draws: [], strata: [] };
  const nodes = [], stratumOf = [], weights = [], squares = [];
  for (let i = 0; i < data.strata.length; i += 3) {
    const [n, weight, squares] = data.strata.slice(i, i + 3);
    its.strata.push({ n: n, weight: weight * data.scale, squares: squares * data.scale * data.scale });
  }
  const number = columns.reader(data.texts.join(""));
  let node = 0;
  for (const factor of data.factors) {
    node += number();
    let stratum = 0;
    for (let left = number(); left > 0; left--) {
      stratum += number();
      const weight = number() * data.scale;
      nodes.push(node);
      stratumOf.push(stratum);
      weights.push(weight);
      squares.push(weight * factor * data.scale);
    }
  }
  its.ticks = { n: nodes.length, node: Int32Array.from(nodes), stratum: Int32Array.from(stratumOf),
                weight: Float64Array.from(weights), squares: Float64Array.from(squares) };
  node = 0;
  for (let i = 0; i < data.draws.length; i += 4) {
    const [distance, rest, variance, alone] = data.draws.slice(i, i + 4);
    node += distance;
    its.draws.push({ node: node, rest: rest * data.scale, variance: variance * data.scale * data.scale, alone: alone });
  }
  return its;
}

// What the ticks and draws of some nodes say; has(node): is it one of them?
function rowOf(its, has) {
  const zeros = () => new Float64Array(its.strata.length);
  const row = { sum: 0, weight: zeros(), squares: zeros(), rest: 0, variance: 0, alone: 0 };
  const { n, node, stratum, weight, squares } = its.ticks;
  for (let i = 0; i < n; i++) {
    if (!has(node[i])) continue;
    row.sum += weight[i];
    row.weight[stratum[i]] += weight[i];
    row.squares[stratum[i]] += squares[i];
  }
  for (const draw of its.draws) {
    if (!has(draw.node)) continue;
    row.rest += draw.rest;
    row.variance += draw.variance;
    row.alone += draw.alone;
  }
  return row;
}

function tickVariance(its, row) {
  let edges = 0, own = 0, whole = 0, before = null;
  its.strata.forEach((s, i) => {
    if (!s.weight) return;
    const d = row.weight[i] / s.weight, few = s.n > 1 ? s.n / (s.n - 1) : 0;
    own += few * Math.max(row.squares[i] * (1 - 2 * d) + d * d * s.squares, 0);
    whole += few * Math.max(d - d * d, 0) * s.squares;
    if (before !== null) edges += (d - before) ** 2 / 2 * s.squares / s.n;
    before = d;
  });
  return edges + Math.max(own, whole);
}

// The ends of the interval of an amount of nodes.
function interval(its, has, amount) {
  if (amount === 0) return [0, its.unseen];
  const row = rowOf(its, has);
  let low = amount, high = amount;
  if (its.sum > 0 && row.sum > 0) {
    const p = Math.min(row.sum / its.sum, 1), variance = tickVariance(its, row);
    const n = p < 1 && variance > 0 ? its.sum ** 2 * p * (1 - p) / variance : its.n;
    const [least, most] = intervals.share(p * n, n);
    low += (least - p) * its.sum;
    high += (most - p) * its.sum;
  }
  if (row.variance > 0 && row.rest > 0) {
    const scale = row.variance / row.rest, [least, most] = intervals.count(row.rest / scale);
    low += (row.alone > ALONE ? 0 : least * scale) - row.rest;
    high += most * scale - row.rest;
  }
  return [low, high];
}

// The ends of the interval of a change, by Newcombe's method.
function change(now, [low, high], before, [baseLow, baseHigh]) {
  return [now - before - Math.hypot(now - low, baseHigh - before), now - before + Math.hypot(high - now, before - baseLow)];
}

// The intervals of a node's total now, before, and of its change. its, base: as of parse(), base null without one.
function ofNode(its, base, tree, i) {
  const has = tree.holder(i), total = tree.total[i], now = interval(its, has, total);
  if (!base) return { now: now };
  const before = interval(base, has, tree.otherTotal[i]);
  return { now: now, before: before, change: change(total, now, tree.otherTotal[i], before) };
}

// Returns a function that tells whether chance alone can make the change of a node of a tree. Many boxes of large
// profiles take too long: those that are asked for first, callers before callees, count.
function chanceOf(its, base, tree) {
  const known = new Map(), cost = its.ticks.n + its.draws.length + base.ticks.n + base.draws.length;
  let left = STEPS;
  return i => {
    if (!known.has(i)) {
      left -= cost;
      if (left < 0) return false;
      const [low, high] = ofNode(its, base, tree, i).change;
      known.set(i, low < 0 && high > 0);
    }
    return known.get(i);
  };
}

// An interval as a text: half of it, or both ends if they are not alike; "" if it is exact.
function text(low, high, value, valueText) {
  const half = (high - low) / 2, signed = v => (v < 0 ? "-" : "") + valueText(Math.abs(v));
  if (valueText(half) === valueText(0)) return "";
  if (Math.abs(high + low - 2 * value) <= LOPSIDED * half) return "\u00b1 " + valueText(half);
  return signed(low) + " .. " + signed(high);
}

return { parse: parse, ofNode: ofNode, chanceOf: chanceOf, text: text };
})();
