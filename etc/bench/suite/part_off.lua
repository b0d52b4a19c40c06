----------------------------------------------------------------------------
-- Benchmark suite: what the profiler costs while it is off, against LuaJIT
-- without our files.
----------------------------------------------------------------------------

local layouts = require("layouts")
local proc = require("proc")
local report = require("report")
local stat = require("stat")

-- Many short runs, as each pair is at other places, see layouts.lua.
local RUN_SECONDS = 0.03

local off = {}

-- The CPU seconds of a program in a LuaJIT of its own.
local function seconds(suite, luajit, jit, program, iterations)
  local out = suite.work .. "/seconds"
  local ok, why = proc.run({ luajit, "-j" .. jit, suite.source .. "/etc/bench/run.lua",
    suite.here .. "/programs.lua", program, tostring(iterations), "1" },
    { out = out, err = out .. ".err", seconds = 120 })
  if not ok then return nil, why end
  return tonumber(proc.read(out)), "no number was printed"
end

local function new_table()
  return report.table("off", "Off", [[
CPU time of our build, not profiling, over that of the same LuaJIT without our files; a process of
its own each time. Both are linked anew for each round, LuaJIT's code at another random place.]], {
    { key = "program", title = "program" }, { key = "jit", title = "JIT" },
    { key = "ratio", title = "ours / plain", digits = 4, from = 1 },
    { key = "noise", title = "noise, %", digits = 2 },
    { key = "pairs", title = "pairs" },
    { key = "plain_ms", title = "plain, ms", digits = 1 } })
end

function off.run(suite, duration, add)
  local t = new_table()
  local plain = suite.build .. "/plain/bin/luajit"
  if not proc.size(plain) then
    report.miss(t, "plain LuaJIT", "no plain/ in the build, configure with -DSYSPROF_BUILD_PLAIN=ON")
    return add(t)
  end
  local list, till = {}, proc.now() + duration
  local relink, why = layouts.new(suite)
  if not relink then report.miss(t, "other places of the code", why) end
  local fixed = { ours = suite.luajit, plain = plain }
  for _, jit in ipairs({ "off", "on" }) do
    for _, name in ipairs(suite.programs) do
      local once, why = seconds(suite, suite.luajit, jit, name, 1)
      if once then
	list[#list + 1] = { program = name, jit = jit, ours = {}, plain = {},
	  iterations = math.max(1, math.floor(RUN_SECONDS / math.max(once, 1e-4) + 0.5)) }
      else
	report.miss(t, name .. ", JIT " .. jit, why)
      end
    end
  end
  local round = 0
  repeat
    round = round + 1
    local luajit = relink and assert(relink()) or fixed
    for _, bench in ipairs(list) do
      local order = round % 2 == 1 and { "ours", "plain" } or { "plain", "ours" }
      local found = {}
      for _, which in ipairs(order) do
	found[which] = assert(seconds(suite, luajit[which], bench.jit, bench.program,
				      bench.iterations))
      end
      bench.ours[round], bench.plain[round] = found.ours, found.plain
    end
  until proc.now() >= till and round >= 2
  local all = stat.pool()
  for _, bench in ipairs(list) do
    local ratios = stat.ratios(bench.ours, bench.plain)
    local ratio = stat.summary(ratios)
    t.rows[#t.rows + 1] = { program = bench.program, jit = bench.jit, ratio = ratio,
      noise = stat.noise(ratio), pairs = ratio.n,
      plain_ms = 1e3 * stat.summary(bench.plain).median }
    all.add(bench.jit, ratios)
  end
  for _, jit in ipairs(all.names) do
    local ratio = stat.summary(all[jit])
    t.rows[#t.rows + 1] = { program = "all", jit = jit, ratio = ratio,
			    noise = stat.noise(ratio), pairs = ratio.n }
  end
  add(t)
end

return off
