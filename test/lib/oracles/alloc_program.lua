----------------------------------------------------------------------------
-- Ten lines that allocate 1:2:...:10, in bytes and in blocks, of sizes from 16 bytes to 1 MiB:
-- the profile of the event alloc gives each its share. After random deaths, the event live gives
-- each its share of what is alive.
--
-- A line allocates cdata or tables. Before the profile, each is called without a collection,
-- and LuaJIT's own account gives the bytes of a call.
----------------------------------------------------------------------------

local ffi = require("ffi")
local events = require("sysprof.model.events")
local reader = require("sysprof.read.reader")
local truth = require("alloc_truth")

local program = {}

local keep
local bytes = ffi.typeof("char[?]")
local lines = {
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
  function(n, size) for _ = 1, n do keep = bytes(size) end end,
}

-- Returns the bytes that f(n, size) allocates, divided by n. The compiler may allocate, too, in some
-- of the tries.
local function bytes_of(f, n, size)
  local least = math.huge
  for _ = 1, 10 do
    collectgarbage()
    collectgarbage("stop")
    local before = collectgarbage("count")
    f(n, size)
    local after = collectgarbage("count")
    collectgarbage("restart")
    least = math.min(least, (after - before) * 1024 / n)
  end
  return least
end

-- Bytes of a block for an array of that many bytes.
local function block_size(size) return bytes_of(lines[1], 64, size) end

-- A table is inlined by the compiler into its caller; a loop calls it.
local function point(x) return { x, x } end
local function points(n) for i = 1, n do keep = point(i) end end

local function line_of(f) return debug.getinfo(f, "S").linedefined end

local function report(what, z)
  local worst = 0
  for key, value in pairs(z) do
    worst = math.max(worst, math.abs(value))
    assert(math.abs(value) < truth.Z, ("%s: %s is off by %.1f standard errors"):format(what, key, value))
  end
  print(("%-40s the worst share is off by %.2f standard errors"):format(what, worst))
end

local SIZES = { 16, 48, 100, 500, 2000, 10000, 70000, 300000, 1048576 }
local PERIOD = 524288

-- Profiles a run. what: "bytes" or "objects" is 1:2:...:10.
local function run(what, period, scale)
  local path = what .. ".bin"
  local size_of = {}
  for i, size in ipairs(SIZES) do size_of[i] = block_size(size) end
  assert(misc.sysprof.start { mode = "C", clock = ("alloc/period=%d/"):format(period), path = path,
			      force = true })
  local parts = { bytes = {}, objects = {} }
  for k, f in ipairs(lines) do
    local mean, var, blocks, blocks_var = 0, 0, 0, 0
    local function add(n, i)
      f(n, SIZES[i])
      local a, b, c, d = truth.moments(n, size_of[i], period)
      mean, var, blocks, blocks_var = mean + a, var + b, blocks + c, blocks_var + d
    end
    if what == "bytes" then	-- Each size takes the same part of k * scale bytes.
      for i = 1, #SIZES do add(math.ceil(k * scale / #SIZES / size_of[i]), i) end
    else	-- k * scale blocks, most of them small, as in programs.
      for i = 1, 5 do add(math.ceil(k * scale / 2^i), i) end
    end
    parts.bytes[line_of(f)] = { mean = mean, var = var }
    parts.objects[line_of(f)] = { mean = blocks, var = blocks_var }
  end
  assert(misc.sysprof.stop())
  local function key_of(stack, type)	-- The compiler allocates on these lines, too.
    return type == "cdata" and tonumber(stack:match(".*alloc_program%.lua:(%d+)"))
  end
  for _, weight in ipairs { "bytes", "objects" } do
    -- The few bytes of this function are on lines of their own.
    local sums = truth.sums(path, weight, key_of)
    report(("%s 1:2:...:10, %s, one in %d"):format(what, weight, period),
	   truth.errors(parts[weight], sums))
  end
end

-- A function that the compiler inlines has what it allocates.
local function run_inlined()
  local size = bytes_of(points, 1000)
  local n, period = 2000000, 65536
  assert(misc.sysprof.start { mode = "C", clock = ("alloc/period=%d/"):format(period),
			      path = "inlined.bin", force = true })
  points(n)
  assert(misc.sysprof.stop())
  local mean, var = truth.moments(n, size, period)
  local got = truth.sums("inlined.bin", "bytes", function(stack)
    return stack:match(("alloc_program%%.lua:%d[^;]*;[^;]*alloc_program%%.lua:%d[^;]*$")
		       :format(line_of(points), line_of(point))) and 1
  end)
  report("inlined", { inlined = ((got[1] or 0) - mean) / math.sqrt(var) })
end

-- Lines that keep what they allocate.
local keepers = {
  function(list, from, to, size) for i = from, to do list[i] = bytes(size) end end,
  function(list, from, to, size) for i = from, to do list[i] = bytes(size) end end,
  function(list, from, to, size) for i = from, to do list[i] = bytes(size) end end,
  function(list, from, to, size) for i = from, to do list[i] = bytes(size) end end,
  function(list, from, to, size) for i = from, to do list[i] = bytes(size) end end,
}

-- Returns the period of what is live in a profile.
local function live_period(path)
  for _, e in ipairs(events.list(assert(reader.read(path)))) do
    if e.name == "live" then return e.periods[1] end
  end
end

local PIECE = 500

-- Of k * scale bytes on the k-th line, each block dies at random. is_full: the table of the
-- profiler becomes full, and its period longer.
local function run_live(period, scale, is_full)
  local table_new = require("table.new")
  local kept, alive, parts = {}, {}, { bytes = {}, objects = {} }
  for k in ipairs(keepers) do
    kept[k] = {}
    for i in ipairs(SIZES) do kept[k][i] = table_new(math.ceil(k * scale / SIZES[i]) + 1, 0) end
  end
  local size_of = {}
  for i, size in ipairs(SIZES) do size_of[i] = block_size(size) end
  assert(misc.sysprof.start { mode = "C", clock = ("alloc/period=%d/"):format(period), path = "live.bin",
			      force = true })
  for k, f in ipairs(keepers) do
    alive[k] = {}
    for i, list in ipairs(kept[k]) do
      local n, left = math.ceil(k * scale / #SIZES / size_of[i]), 0
      -- A compiled loop does not write the profile. This function is not compiled.
      for j = 1, n, PIECE do f(list, j, math.min(j + PIECE - 1, n), SIZES[i]) end
      for j = 1, n do
	if math.random(10) > k then list[j] = false else left = left + 1 end
      end
      alive[k][i] = left
    end
  end
  collectgarbage()
  collectgarbage()
  assert(misc.sysprof.stop())
  local longer = live_period("live.bin")
  assert(is_full and longer > period or longer == period, "the period is " .. longer)
  for k, f in ipairs(keepers) do
    local mean, var, blocks, blocks_var = 0, 0, 0, 0
    for i, left in ipairs(alive[k]) do
      local a, b, c, d = truth.moments(left, size_of[i], longer)
      mean, var, blocks, blocks_var = mean + a, var + b, blocks + c, blocks_var + d
    end
    parts.bytes[line_of(f)] = { mean = mean, var = var }
    parts.objects[line_of(f)] = { mean = blocks, var = blocks_var }
  end
  for _, weight in ipairs { "bytes", "objects" } do
    -- The compiler's traces are live, too.
    local sums = truth.sums("live.bin", weight, function(stack, type)
      local line = tonumber(stack:match(".*alloc_program%.lua:(%d+)"))
      return type == "cdata" and parts.bytes[line] and line
    end, "live")
    report(("live, %s, one in %d"):format(weight, longer), truth.errors(parts[weight], sums))
  end
  assert(kept)
end

jit.off(run_live)

function program.run()
  run("bytes", PERIOD, 5e7)
  run("bytes", 16384, 5e6)
  run("objects", 4096, 20000)
  run("objects", 65536, 400000)
  run_inlined()
  run_live(524288, 4e7)
  run_live(4096, 2e6)
  run_live(1, 2e5)
  run_live(1, 6e6, true)
end

return program
