-- misc.memprof.count: exact allocations and bytes a call, by type, against programs whose
-- allocations are known, and against LuaJIT's own total. The collector, errors and profiles
-- are as without it.

local t = require("tools_test")
local ffi = require("ffi")
local count = misc.memprof.count

local TABLE, SLOT, NODE = 64, 8, 24	-- Bytes: GCtab, TValue, Node.
local keep, n = { false }, 0

-- Checks a count: { allocations, bytes } a call of each type. The bytes may be left out.
local function check(what, r, types)
  local allocs, bytes = 0, 0
  for name, of in pairs(r.types) do
    local want = types[name]
    t.ok(want, what .. ": " .. name)
    if want then
      t.equal(of.allocs, want[1], what .. ": allocations: " .. name)
      if want[2] then t.equal(of.bytes, want[2], what .. ": bytes: " .. name) end
    end
    allocs, bytes = allocs + of.allocs, bytes + of.bytes
  end
  for name in pairs(types) do t.ok(r.types[name], what .. ": no " .. name) end
  t.ok(math.abs(r.allocs - allocs) < 1e-9, what .. ": sum of allocations")
  t.ok(math.abs(r.bytes - bytes) < 1e-6, what .. ": sum of bytes")
  return r
end

-- -- Known programs --------------------------------------------------------

local int_array = ffi.typeof("int[?]")

local function known_programs()
  n = 0
  check("4 of 5", count(function() n = n + 1 if n % 5 ~= 0 then keep[1] = {} end end, 5),
	{ table = { 0.8, 0.8 * TABLE } })
  check("nothing", count(function() end), {})
  check("a table", count(function() keep[1] = {} return keep end), { table = { 1, TABLE } })
  check("a list in its table", count(function() keep[1] = { n, n } end),
	{ table = { 1, TABLE + 3 * SLOT } })
  check("a hash part", count(function() keep[1] = { x = n } end),
	{ table = { 1, TABLE }, ["table part"] = { 1, 2 * NODE } })
  check("a closure", count(function() local x = n keep[1] = function() x = x + 1 end end),
	{ ["function"] = { 1 }, upvalue = { 1 } })
  check("cdata", count(function() keep[1] = int_array(10) end), { cdata = { 1 } })
  check("userdata", count(function() keep[1] = newproxy() end), { userdata = { 1 } })
  check("coroutines", count(function() keep[1] = coroutine.create(print) end),
	{ thread = { 2 } })
  n = 1e6	-- All numbers have as many digits.
  local r = count(function() n = n + 1 keep[1] = "number " .. n end, 10)
  t.equal(r.types.string.allocs, 1, "a string")
  check("the same string", count(function() keep[1] = "number " .. n end), {})
end

-- A list that grows one by one: each array part has room for the indices 0 to a power of 2, 2
-- at first.
local function growth(entries)
  local parts, bytes, last = 1, 3 * SLOT, 2
  while last < entries do
    last = last * 2
    parts, bytes = parts + 1, bytes + (last + 1) * SLOT
  end
  local r = count(function()
    local list = {}
    for i = 1, entries do list[i] = i end
    keep[1] = list
  end)
  local what = "growth to " .. entries
  check(what, r, { table = { 1, TABLE }, ["table part"] = { parts, bytes } })
  -- Each part replaces the one before it.
  local freed = bytes - (last + 1) * SLOT
  t.ok(r.freed >= freed, what .. ": freed")
  if r.compiler.allocs == 0 then t.equal(r.freed, freed, what .. ": freed") end
end

-- -- LuaJIT's own total ----------------------------------------------------

-- Programs that allocate of everything, and free, by a random choice.
local unique = 0
local steps = {
  function(list) list[#list + 1] = {} end,
  function(list) list[#list + 1] = { unique, x = unique } end,
  function(list) list["k" .. unique] = unique end,
  function(list) list[#list + 1] = function() return list, unique end end,
  function(list) coroutine.wrap(function() list[#list + 1] = ("x"):rep(unique) end)() end,
  function(list) list[#list + 1] = ffi.new("char[?]", unique % 5000) end,
  function(list) list[#list + 1] = unique * 1LL end,
  function(list) list[#list + 1] = loadstring("return function() return " .. unique .. " end") end,
  function(list) list[#list + 1] = ("%d"):rep(100):gsub("%%", tostring(unique)) end,
  function(list) for i = 1, 100 do list[i] = { i } end end,
  function(list) for i = #list, 1, -1 do list[i] = nil end collectgarbage() end,
  function(list) table.sort(list, function(a, b) return tostring(a) < tostring(b) end) end,
  function() collectgarbage("step", 100) end,
  function() jit.flush() end,
  function(list) pcall(error, list) end,
}

local function check_total(what, seed)
  local RUNS = 16	-- A power of 2: the quotients are exact.
  local list = {}
  local first, last
  math.randomseed(seed)
  local function work()
    for _ = 1, 30 do
      unique = unique + 1
      steps[math.random(#steps)](list)
    end
  end
  local function observed()
    first = first or collectgarbage("count")
    work()
    last = collectgarbage("count")
  end
  jit.off(observed)	-- The compiler begins after the first look, and ends before the last.
  local r = count(observed, RUNS, { warmup = 0 })
  t.equal((r.bytes + r.compiler.bytes - r.freed) * RUNS, (last - first) * 1024,
	  what .. ": gross less freed")
end

-- -- The rest --------------------------------------------------------------

local N = 1e4	-- Turns: with ten calls, a loop is hot even if an aborted one has its counter.
local function compiler_is_apart()
  local what = "the compiler"
  jit.flush()
  local function work()
    for i = 1, N do keep[1] = { i } end
  end
  local types = { table = { N, N * (TABLE + 3 * SLOT) } }
  local r = check(what, count(work, 10, { warmup = 0 }), types)
  t.ok(r.compiler.allocs > 0 and r.compiler.bytes > 0, what .. ": without a warm-up")
  r = check(what, count(work, 10), types)
  t.equal(r.compiler.allocs, 0, what .. ": after a warm-up")
  t.equal(r.compiler.bytes, 0, what .. ": after a warm-up")
  -- Compiled code does not allocate what it does not need.
  check("sunk", count(function()
    local sum = 0
    for i = 1, N do
      local p = { i }
      sum = sum + p[1]
    end
    return sum
  end, 10, { warmup = 10 }), {})
end

local function calls()
  local called = 0
  count(function(...) called = called + 1 t.equal(select("#", ...), 0, "arguments") end)
  t.equal(called, 101, "calls by default")
  called = 0
  count(function() called = called + 1 return 1, 2, 3 end, 7, { warmup = 3 })
  t.equal(called, 10, "calls")
end

-- Does the collector run by itself?
local function collects()
  local collected = false
  getmetatable(newproxy(true)).__gc = function() collected = true end
  for i = 1, 1e5 do keep[1] = { i } end
  return collected
end

local function collector()
  keep[1] = false
  collectgarbage()
  t.ok(collects(), "the collector runs")
  local r = count(function() t.ok(not collects(), "it is stopped meanwhile") end, 1)
  t.ok(r.freed < 1000, "nothing is freed but parts of tables: " .. r.freed)
  t.ok(collects(), "the collector runs again")
  pcall(count, error)
  t.ok(collects(), "the collector runs again after an error")
  count(function() collectgarbage("stop") end)
  t.ok(collects(), "the collector runs although the function stopped it")
  collectgarbage("stop")
  count(function() keep[1] = {} end)
  count(function() collectgarbage("restart") end)
  t.ok(not collects(), "it is stopped as before")
  collectgarbage("restart")
end

local function errors()
  local mine = {}
  local function raise() error(mine) end
  for _, warmup in ipairs({ 0, 1 }) do
    local ok, err = pcall(count, raise, 3, { warmup = warmup })
    t.ok(not ok and err == mine, "the function's error passes through")
  end
  check("after an error", count(function() keep[1] = {} end), { table = { 1, TABLE } })
  local inner
  count(function() inner = { pcall(count, print) } end, 1, { warmup = 0 })
  t.equal(inner[1], false, "within itself")
  t.contains(inner[2], "this VM counts the allocations of a function already; count another "
	     .. "one after that", "within itself")
  local function yields() count(coroutine.yield) end
  t.contains(select(2, coroutine.resume(coroutine.create(yields))), "attempt to yield", "yield")
  local RANGE = "; expected a whole number from "
  for _, case in ipairs({
    { "runs is 0" .. RANGE .. "1 to 1000000000", print, 0 },
    { "runs is -1" .. RANGE, print, -1 }, { "runs is 1.5" .. RANGE, print, 1.5 },
    { "runs is 10000000000" .. RANGE, print, 1e10 }, { "runs is nan" .. RANGE, print, 0 / 0 },
    { "runs is string" .. RANGE, print, "many" }, { "runs is string" .. RANGE, print, "5" },
    { "warmup is -1" .. RANGE .. "0 to 1000000000", print, 1, { warmup = -1 } },
    { "warmup is boolean" .. RANGE, print, 1, { warmup = true } },
    { "#3", print, 1, 5 }, { "#1", nil }, { "#1", {} } }) do
    local ok, err = pcall(count, case[2], case[3], case[4])
    t.equal(ok, false, case[1])
    t.contains(err, case[1], case[1])
    t.ok(not err:find("\n"), "one sentence: " .. err)
  end
end

-- A profile of allocations goes on beside a count, and counts the same.
local function beside_a_profile(clock)
  local what = "beside " .. clock
  local function work() for i = 1, 100 do keep[1] = { i } end end
  assert(misc.sysprof.start({ mode = "C", clock = clock, path = "beside.bin" }))
  check(what, count(work, 50), { table = { 100, 100 * (TABLE + 3 * SLOT) } })
  work()
  assert(misc.sysprof.stop())
  check("after " .. clock, count(work, 50), { table = { 100, 100 * (TABLE + 3 * SLOT) } })
  if not clock:find("alloc") then return end
  local status, out, err = t.parse("--event=alloc --weight=objects --label='type=table' beside.bin")
  t.equal(status .. err, "0", what)
  local objects = 0
  for stack, weight in out:gmatch("([^\n]*) (%d+)\n") do
    if stack:find("allocations_per_call.lua:" .. debug.getinfo(work, "S").linedefined, 1, true) then
      objects = objects + weight
    end
  end
  t.equal(objects, 52 * 100, what .. ": the profile has all")
end

-- A profile that begins or ends in the function.
local OPTIONS = { mode = "C", clock = "alloc/period=1/", path = "within.bin" }
local function profile_within()
  local function start() keep[1] = {} assert(misc.sysprof.start(OPTIONS)) keep[1] = {} end
  local function stop() keep[1] = {} assert(misc.sysprof.stop()) keep[1] = {} end
  local function check_tables(what, f, n, expected)
    local r = count(f, n, { warmup = 0 })
    t.equal(r.types.table.allocs, expected, what)
  end
  check_tables("both", function() start() stop() end, 3, 4)
  check_tables("a start", start, 1, 2)
  check_tables("a stop", stop, 1, 2)
end

for _, mode in ipairs({ "off", "on" }) do
  jit[mode]()
  known_programs()
  for _, entries in ipairs({ 1, 2, 3, 32, 33, 1000 }) do growth(entries) end
  for seed = 1, 40 do check_total(("JIT %s, program %d"):format(mode, seed), seed) end
  calls()
  collector()
  errors()
  for _, clock in ipairs({ "cpu", "alloc/period=1/", "cpu,alloc/period=1/" }) do
    beside_a_profile(clock)
  end
  profile_within()
end
compiler_is_apart()
t.finish()
