// Intervals that hold a true value in 95 % of the cases: those of sysprof.model.intervals.

const intervals = (function () {
"use strict";

const Z = 1.959964, TAIL = 0.025, MANY = 200, POISSON = 1e7, HALVINGS = 45, STEPS = 300, PRECISE = 1e-12, TINY = 1e-300;
const LANCZOS = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
                 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

function logGamma(x) {
  if (x < 0.5) return logGamma(x + 1) - Math.log(x);
  const t = x + 6.5, sum = LANCZOS.reduce((s, c, i) => s + c / (x + i), 0.99999999999980993);
  return 0.918938533204672742 + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

// The continued fraction of the incomplete beta function.
function fraction(x, a, b) {
  const notZero = v => Math.abs(v) < TINY ? TINY : v;
  let c = 1, d = 1 / notZero(1 - (a + b) * x / (a + 1)), value = d;
  for (let m = 1; m <= STEPS; m++) {
    const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / notZero(1 + even * d);
    c = notZero(1 + even / c);
    value *= d * c;
    const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / notZero(1 + odd * d);
    c = notZero(1 + odd / c);
    value *= d * c;
    if (Math.abs(d * c - 1) < PRECISE) break;
  }
  return value;
}

function beta(x, a, b) {
  if (a <= 0) return 1;
  if (b <= 0 || x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x));
  return x < (a + 1) / (a + b + 2) ? front * fraction(x, a, b) / a : 1 - front * fraction(1 - x, b, a) / b;
}

function solve(grows, value) {
  let low = 0, high = 1;
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (grows(middle) < value) low = middle; else high = middle;
  }
  return (low + high) / 2;
}

// The interval of the share that k of n samples have.
function share(k, n) {
  if (k >= MANY && n - k >= MANY) {
    const z2 = Z * Z, middle = (k + z2 / 2) / (n + z2), width = Z * Math.sqrt(k * (n - k) / n + z2 / 4) / (n + z2);
    return [Math.max(middle - width, 0), Math.min(middle + width, 1)];
  }
  const low = k > 0 ? solve(x => beta(x, k, n - k + 1), TAIL) : 0;
  const high = n > k ? solve(x => beta(x, k + 1, n - k), 1 - TAIL) : 1;
  return [Math.min(low, k / n), Math.max(high, k / n)];
}

// The interval of the mean of a Poisson distribution.
function count(k) {
  if (k < MANY) return share(k, POISSON).map(v => v * POISSON);
  const z2 = Z * Z, width = Z * Math.sqrt(k + z2 / 4);
  return [k + z2 / 2 - width, k + z2 / 2 + width];
}

return { share: share, count: count };
})();
