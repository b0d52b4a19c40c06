----------------------------------------------------------------------------
-- Values in a flame graph's page, in JavaScript: valueText(v), by the name of a unit.
--
-- The texts are those of sysprof.model.units, with separators of thousands.
----------------------------------------------------------------------------

local values = {}

values.samples = [=[
function valueText(v) {
  if (data.unit === "count") return v.toLocaleString("en") + " " + data.event;
  if (data.unit !== "us") return v.toLocaleString("en") + (v === 1 ? " sample" : " samples");
  return v >= 1e6 ? (v / 1e6).toFixed(3) + " s" : (v / 1e3).toFixed(3) + " ms";
}
]=]
values.us, values.count = values.samples, values.samples

values.ns = [=[
function valueText(v) {
  return v >= 1e9 ? (v / 1e9).toFixed(3) + " s" : (v / 1e6).toFixed(3) + " ms";
}
]=]

values.bytes = [=[
function valueText(v) {
  const prefixes = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  if (v < 1023.5) return v.toFixed(0) + " B";
  let prefix = 0;
  for (v /= 1024; v >= 1023.95 && prefix < 4; prefix++) v /= 1024;
  return v.toFixed(1).replace(/\.0$/, "") + " " + prefixes[prefix];
}
]=]

return values
