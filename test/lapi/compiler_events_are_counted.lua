-- The events of the compiler have the counts, lines and reasons of jit.attach in the same run, with many
-- programs and parameters of the compiler. All stacks are whole. Code is blacklisted as often as bytecode says.
-- TIMEOUT: 300
-- LONG: 25
-- By hand: compiler_events_are_counted.lua SEED [SECONDS].

local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local t = require("tools_test")
local truth = require("compiler_truth")

local SEED = tonumber(arg[1]) or os.time()
local SECONDS = tonumber(arg[2]) or 20
print("seed " .. SEED)
math.randomseed(SEED)
local random = math.random

-- -- Pieces of programs -------------------------------------------------------

local keep, N = {}, 0

local function count(...) return select("#", ...) end

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end

local function off(x) return x + 1 end
jit.off(off)

local pair = ffi.typeof("struct { int a; double b; }")

local indexed = setmetatable({}, { __index = function(_, k) return k end })

local pieces = {
  function() for i = 1, N do keep[i % 8] = function() return i end end end,
  function() local s = 0 for i = 1, N do for k = 1, random(4) do s = s + k * i end end return s end,
  function() local s = "" for i = 1, N do s = ("%d"):format(i) .. s:sub(1, 5) end return s end,
  function() for i = 1, N do pcall(error, i) end end,
  function() local s = 0 for i = 1, N do s = s + count(i, i, i) end return s end,
  function() return fib(12) end,
  function() for _ = 1, N / 10 do down(30) end end,
  function() for i = 1, N do off(i) end end,
  function() for i = 1, N do keep[1] = indexed[i] end end,
  function() for i = 1, N do ("x y z"):gsub("%w", function(c) return c .. i end) end end,
  function() local u = {} for i = 1, 30 do u[i] = random(100) end table.sort(u, function(a, b) return a < b end) end,
  function() for k, v in pairs(indexed) do keep[1] = k or v end for k in next, keep do keep.k = k end end,
  function() for i = 1, N do coroutine.wrap(function() return i end)() end end,
  function() local a = ffi.new("int[10]") for i = 1, N do a[i % 10] = i a[0] = a[0] + a[i % 10] end end,
  function() for i = 1, N do keep[1] = pair(i, i) end end,
  function() local x = 1 for i = 1, N do if i % 7 == 0 then x = tostring(x) else x = i + x % 9 end end end,
  function() for i = 1, N do if i % 3 == 0 then keep[2] = i elseif i % 5 == 0 then keep[3] = i end end end,
  function() assert(loadstring("local s = 0 for i = 1, 200 do s = s + i end " .. ("s = s * 2 "):rep(random(9))))() end,
  function() jit.flush() end,
  function() for i = 1, N do if i % 50 == 0 then collectgarbage("step") end keep[4] = { i } end end,
  function() local i = 0 while i < N do i = i + 1 repeat local x = i until x end end,
  function() for i = 1, N do keep[5] = unpack({ i, i, i }) end end,
}

local PARAMETERS = {
  hotloop = { 1, 3, 56 }, hotexit = { 1, 2, 10 }, maxtrace = { 5, 30, 1000 }, maxrecord = { 50, 4000 }, maxside = { 2, 100 },
  maxsnap = { 10, 500 }, maxirconst = { 50, 500 }, minstitch = { 0, 3 }, tryside = { 1, 4 }, loopunroll = { 2, 15 },
  callunroll = { 1, 3 }, recunroll = { 1, 2 }, instunroll = { 1, 4 }, maxmcode = { 64, 512 }, sizemcode = { 32, 64 },
}

local function set_parameters()
  local list = {}
  for name, values in pairs(PARAMETERS) do list[#list + 1] = name .. "=" .. values[random(#values)] end
  for _, name in ipairs { "fold", "cse", "dce", "fwd", "dse", "narrow", "loop", "abc", "sink", "fuse" } do
    list[#list + 1] = (random(6) == 1 and "-" or "+") .. name
  end
  jit.opt.start(unpack(list))
end

local function run()
  N = random(400)
  for _ = 1, 30 do pieces[random(#pieces)]() end
end

-- -- Comparison ----------------------------------------------------------------

local function compare(round)
  set_parameters()
  truth.begin()
  assert(misc.sysprof.start { mode = "C", clock = "jit,trace-exit/period=3/", path = "c.bin" })
  local co = random(3) == 1 and coroutine.wrap(run)
  for _ = 1, 3 do (co or run)() co = nil end
  assert(misc.sysprof.stop())
  local log = truth.finish()
  local what = ("round %d: "):format(round)
  local sums, sum, total = truth.sums("c.bin", "trace-abort")
  t.equal(sum, log.abort or 0, what .. "aborts")
  t.equal(total, log.abort or 0, what .. "total of aborts")
  for key, n in pairs(log.aborts) do
    if not key:find("^0 ") then t.equal(sums[key], n, what .. key) end
  end
  for key in pairs(sums) do t.ok(log.aborts[key] or key:find("^0 "), what .. "never happened: " .. key) end
  local _
  _, sum = truth.sums("c.bin", "trace-flush")
  t.equal(sum, log.flush or 0, what .. "flushes")
  _, sum = truth.sums("c.bin", "trace-stop")
  t.equal(sum, log.stop or 0, what .. "new traces")
  _, sum, total = truth.sums("c.bin", "trace-exit")
  t.equal(total, log.texit or 0, what .. "exits")
  t.ok(sum <= total and sum > total - 6, what .. "sampled exits")
  for _, event in ipairs { "trace-abort", "trace-flush", "trace-stop", "trace-exit", "trace-blacklist" } do
    local counters = select(4, truth.sums("c.bin", event))
    t.equal(counters[G.SPF_EVENT_LUA_BROKEN] or 0, 0, what .. event .. ": broken Lua sides")
    t.equal(counters[G.SPF_EVENT_HOST_BROKEN] or 0, 0, what .. event .. ": broken host sides")
  end
end

jit.off(compare)	-- So that nothing is recorded across the start.

local stop, round = os.time() + SECONDS, 0
while os.time() < stop do
  round = round + 1
  compare(round)
end
-- -- Too many ------------------------------------------------------------------

-- Beyond the bound, an event has its line and reason. Lines are few, or functions are freed at once.
local storms = {
  function(i) loadstring("local s = 0 for i = 1, 5 do s = s + " .. i .. " end")() end,
  function()
    local line = ("\n"):rep(random(9))
    loadstring((line .. "for i = 1, 9 do local f = function() return i end end "):rep(8))()
  end,
}

local function storm(name, piece)
  jit.opt.start(3, "hotloop=1", "maxtrace=1000", "maxrecord=4000", "maxsnap=500", "sizemcode=64", "maxmcode=512")
  truth.begin()
  assert(misc.sysprof.start { mode = "C", clock = "jit,trace-exit/period=1/", path = "storm.bin" })
  for i = 1, 15000 do piece(i) end
  assert(misc.sysprof.stop())
  local log = truth.finish()
  local what = "storm " .. name .. ": "
  local limit = misc.sysprof.report().limit
  local unplaced, missing = tonumber(limit:match("trace%-abort: (%d+) events lack their line") or 0), 0
  for event, kind in pairs { ["trace-stop"] = "stop", ["trace-flush"] = "flush", ["trace-abort"] = "abort", ["trace-exit"] = "texit" } do
    local sums, sum, total = truth.sums("storm.bin", event)
    t.equal(sum, log[kind] or 0, what .. event)
    t.equal(total or 0, log[kind] or 0, what .. "total of " .. event)
    if kind == "abort" then
      for key, n in pairs(log.aborts) do
	if not key:find("^0 ") then missing = missing + n - (sums[key] or 0) end
      end
      for key in pairs(sums) do t.ok(log.aborts[key] or key:find("^0 "), what .. "never happened: " .. key) end
    end
  end
  t.equal(missing, unplaced, what .. "aborts without their line")
  t.ok(math.max(log.stop or 0, log.abort or 0) > 11000, what .. "it is one")
  t.contains(limit, " came in a second", what .. "limit")
end

jit.off(storm)
for name, piece in ipairs(storms) do storm(name, piece) end
jit.opt.start(3)
print(round .. " rounds")
t.finish()
