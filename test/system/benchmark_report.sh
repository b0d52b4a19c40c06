# The benchmark suite prints its tables and writes them as Markdown and valid JSON. Each
# cell has a ratio or a reason. The values do not matter here.
# TIMEOUT: 1000
# BASE: none, it reads the tables of a benchmark, not their figures
# LONG: 64

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

rm -rf ./*
run=$SYSPROF_SOURCE/etc/bench/run
"$run" "$SYSPROF_BUILD" -o report --seconds=2 --programs=json >printed 2>log || {
  cat printed log
  fail "status $?"
}
cmp printed report/report.md || fail "the printed report differs from the written one"

"$LUAJIT" - <<'LUA' || fail "report.json"
local json = require("json_decode")
local file = assert(io.open("report/report.json", "rb"))
local r = json.decode(file:read("*a"))
assert(r.machine.kernel and r.machine.processor and r.machine.LuaJIT, "no machine")
local seen, ratios = {}, 0
for _, t in ipairs(r.tables) do
  assert(#t.title > 0 and type(t.rows) == "table", t.id)
  assert(#t.rows > 0 or #t.missing > 0, t.id .. ": no row, and no reason")
  seen[t.id] = true
  for _, m in ipairs(t.missing) do assert(#m.what > 0 and #m.why > 0, t.id) end
  local keys = {}
  for _, column in ipairs(t.columns) do keys[column.key] = true end
  for _, row in ipairs(t.rows) do
    for key, value in pairs(row) do
      assert(keys[key], t.id .. ": no column for " .. key)
      if type(value) == "table" then
	assert(value.low <= value.median and value.median <= value.high, t.id)
	assert(value.q1 <= value.q3 and value.n >= 1, t.id)
	ratios = ratios + 1
      end
    end
  end
end
for _, id in ipairs({ "off", "on-default", "on-1kHz", "on-10kHz", "sample-10kHz",
		      "alloc", "peers", "nginx", "handler", "latency", "memory", "stream", "reader", "binary" }) do
  assert(seen[id], "no table " .. id)
end
assert(ratios >= 20, "too few cells: " .. ratios)
LUA

# Each line of a table has as many cells as its head.
awk -F'|' '
  !/^\|/ { cells = 0 }
  /^\|/ && cells && NF != cells { print "line " NR ": " $0; bad = 1 }
  /^\|/ { cells = NF; lines++ }
  END { exit bad || lines < 20 }' report/report.md || fail "the tables of report.md"

# Wrong use is refused in one line.
for wrong in --seconds=x --parts=all --programs=none --bad; do
  "$run" "$SYSPROF_BUILD" -o report $wrong >said 2>&1 && fail "$wrong: status 0"
  [ "$(wc -l <said)" = 1 ] || {
    cat said
    fail "$wrong: not one line"
  }
done
exit $status
