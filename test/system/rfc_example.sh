# The RFC's example, like etc/demo: c_payload, called by FFI, stands above the Lua main
# chunk, which stands above main. The shares of c_payload and lua_payload agree with the
# program's own measurement. Chance fails a right profile once in some hundred thousand
# runs. But a program on a busy machine loses the processor where it calls the kernel, so
# ticks are rarer there. So the test makes three attempts.
# TIMEOUT: 400
# SERIAL: it measures time

set -u
demo=$SYSPROF_SOURCE/etc/demo
rm -rf ./*

eval "cc ${CFLAGS-} -O2 -shared -fPIC -o libc_payload.so \"\$demo/c_payload.c\"" || exit 1
cat >check.lua <<'LUA'
-- Standard errors of a share among the samples, and what measuring costs itself.
local ERRORS_MAX, POINTS_MAX = 4.5, 0.5
local sysprof = require("sysprof")
local p = assert(sysprof.read("profile.bin"))
assert(p.complete, p:problem_text())

local measured = {}
for line in io.lines("measured") do
  local name, share = line:match("^([%w_]+) +([%d.]+) %%$")
  if name then measured[name] = tonumber(share) end
end

-- Does the stack hold frames of these forms, in this order?
local function stands(names, n, forms)
  local at = 1
  for i = 1, n do
    if at <= #forms and names[i].text:match(forms[at]) then at = at + 1 end
  end
  return at > #forms
end

local MAIN_CHUNK = "^main chunk %(.*lua_payload%.lua%)$"
local orders = {
  c_payload = { "^main$", MAIN_CHUNK, "^c_payload$" },
  lua_payload = { "^main$", MAIN_CHUNK, "lua_payload%.lua:%d+%)?$" },
}
local status = 0
local total, samples, ordered = 0, {}, {}
sysprof.view(p):each(function(names, n, value)
  total = total + value
  for name, order in pairs(orders) do
    if stands(names, n, { order[3] }) then
      samples[name] = (samples[name] or 0) + value
      if stands(names, n, order) then ordered[name] = (ordered[name] or 0) + value end
    end
  end
end)
assert(total > 100, "only " .. total .. " samples")
for name in pairs(orders) do
  local share = 100 * (samples[name] or 0) / total
  local real = assert(measured[name], "not measured")
  local difference = share - real
  local max = ERRORS_MAX * math.sqrt(real * (100 - real) / total) + POINTS_MAX
  print(("%-12s measured %6.2f %%, profiled %6.2f %%, %+.2f of %.2f points, %d of %d in true order")
	:format(name, real, share, difference, max, ordered[name] or 0, samples[name] or 0))
  if math.abs(difference) > max or not samples[name] or
     ordered[name] ~= samples[name] then
    print("FAIL: " .. name)
    status = 1
  end
end
os.exit(status)
LUA
for attempt in 1 2 3; do
  echo "attempt $attempt"
  LD_LIBRARY_PATH=$PWD "$LUAJIT" "$demo/lua_payload.lua" 4 profile.bin >measured || exit 1
  cat measured
  "$LUAJIT" check.lua && exit 0
done
exit 1
