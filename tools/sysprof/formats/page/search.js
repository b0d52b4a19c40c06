// Search in a flame graph: which names match, and one matching box after the other.

const searching = (function () {
"use strict";

const STEPS_MAX = 1e9;  // Of a regular expression that nobody typed here.
const ALL_MAX = 10000;  // Matches that may be looked for to find the last one.

function expressionOf(query) {
  const found = /^\/(.+)\/$/.exec(query);
  return found && found[1];
}

// Whether a query may take long: a regular expression tries, for each repeat in it, each place of
// a name again; a repeated group may take exponential time.
function isCostly(query, names) {
  const source = expressionOf(query);
  if (!source) return false;
  const repeats = (source.match(/[*+?{]/g) || []).length;
  if (repeats > 8 || /\)[*+?{]|\\\d/.test(source)) return true;
  return names.reduce((sum, name) => sum + Math.pow(name.length, repeats + 1), 0) > STEPS_MAX;
}

// Returns a function that tests a name, or null for no regular expression.
function matcher(query) {
  const source = expressionOf(query);
  if (source) {
    try {
      const compiled = new RegExp(source, "i");
      return name => compiled.test(name);
    } catch (e) {
      return null;
    }
  }
  const lower = query.toLowerCase();
  return name => name.toLowerCase().includes(lower);
}

// Returns step(by), by 1 or -1: the number of the next matching node of a tree in its order, or of
// the one before, and its place from 1 on; null without any. size(node) is 0 for what has no box.
function stepper(tree, flags, marks, size) {
  const found = [], todo = [0];
  let at = -1;

  // Finds one more, if there is one.
  function more() {
    while (todo.length) {
      const i = todo.pop();
      if (marks.below(i))
        for (const c of tree.kids(i).slice().reverse()) if (size(c) > 0) todo.push(c);
      if (i && flags[tree.name[i]]) return found.push(i);
    }
    return 0;
  }

  return by => {
    if (by > 0) {
      at = at + 1 < found.length || more() ? at + 1 : 0;
    } else if (at > 0) {
      at--;
    } else {
      while (found.length < ALL_MAX && more());
      at = found.length - 1;
    }
    return found.length ? [found[at], at + 1] : null;
  };
}

return { isCostly: isCostly, matcher: matcher, stepper: stepper };
})();
