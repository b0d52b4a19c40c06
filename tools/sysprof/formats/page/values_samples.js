// Values in a flame graph's page: counts, samples or microseconds.
//
// The texts are those of sysprof.model.units, with separators of thousands.

function valueText(v) {
  const whole = Math.round(v).toLocaleString("en");
  if (data.unit === "count") return whole + " " + data.event;
  if (data.unit !== "us") return whole + (whole === "1" ? " sample" : " samples");
  return v >= 1e6 ? (v / 1e6).toFixed(3) + " s" : (v / 1e3).toFixed(3) + " ms";
}
