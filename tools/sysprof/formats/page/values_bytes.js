// Values in a flame graph's page: bytes.
//
// The texts are those of sysprof.model.units, with separators of thousands.

function valueText(v) {
  const prefixes = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  if (v < 1023.5) return v.toFixed(0) + " B";
  let prefix = 0;
  for (v /= 1024; v >= 1023.95 && prefix < 4; prefix++) v /= 1024;
  return v.toFixed(1).replace(/\.0$/, "") + " " + prefixes[prefix];
}
