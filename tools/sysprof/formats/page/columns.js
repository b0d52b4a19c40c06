// Values of a flame graph's nodes by columns of time.
//
// sysprof.formats.flamegraph_columns describes the text of the lists.

const columns = (function () {
"use strict";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const digitOf = new Uint8Array(128);
for (let i = 0; i < DIGITS.length; i++) digitOf[DIGITS.charCodeAt(i)] = i;

// Returns a function that returns the next number of a text; hasMore() tells if there is one.
function reader(text) {
  let at = 0;
  const number = () => {
    let sum = 0;
    for (let scale = 1; ; scale *= 32) {
      const digit = digitOf[text.charCodeAt(at++)];
      sum += (digit & 31) * scale;
      if (digit < 32) return sum;
    }
  };
  number.hasMore = () => at < text.length;
  return number;
}

// Returns fill(self, off, from, to), which adds the values of the columns from to below to, by node; off gets
// those off CPU only.
function parse(texts) {
  const text = texts.join(""), most = text.length >> 1;
  const numbers = [], ends = [], column = new Int32Array(most), value = new Float64Array(most);
  const number = reader(text);
  let n = 0, list = 0;
  while (number.hasMore()) {
    numbers.push(list += number());
    let now = 0;
    for (let left = number(); left > 0; left--) {
      column[n] = now += number();
      value[n++] = number();
    }
    ends.push(n);
  }

  return (self, off, from, to) => {
    let i = 0;
    numbers.forEach((its, k) => {
      let sum = 0;
      for (; i < ends[k]; i++) if (column[i] >= from && column[i] < to) sum += value[i];
      self[its >> 1] += sum;
      if (its & 1) off[its >> 1] += sum;
    });
  };
}

return { parse: parse, reader: reader };
})();
