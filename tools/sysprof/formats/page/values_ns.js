// Values in a flame graph's page: nanoseconds.
//
// The texts are those of sysprof.model.units, with separators of thousands.

function valueText(v) {
  return v >= 1e9 ? (v / 1e9).toFixed(3) + " s" : (v / 1e6).toFixed(3) + " ms";
}
