----------------------------------------------------------------------------
-- Ten lines that allocate 1:2:...:10, in bytes and in blocks, of sizes from 16 bytes to 1 MiB:
-- the profile of the event alloc gives each its share.
--
-- A line allocates cdata or tables. Before the profile, each is called without a collection,
-- and LuaJIT's own account gives the bytes of a call.
----------------------------------------------------------------------------

local ffi = require("ffi")
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

-- Bytes of a block for an array of that many bytes.
local function block_size(size)
  for _ = 1, 4 do lines[1](64, size) end -- Compiles the loop.
  collectgarbage()
  collectgarbage("stop")
  local before = collectgarbage("count")
  lines[1](64, size)
  local after = collectgarbage("count")
  collectgarbage("restart")
  return (after - before) * 1024 / 64
end

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
  local function key_of(stack)
    return tonumber(stack:match(".*alloc_program%.lua:(%d+)"))
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
  collectgarbage("stop")
  local before = collectgarbage("count")
  points(1000)
  local size = (collectgarbage("count") - before) * 1024 / 1000
  collectgarbage("restart")
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

function program.run()
  run("bytes", PERIOD, 5e7)
  run("bytes", 16384, 5e6)
  run("objects", 4096, 20000)
  run("objects", 65536, 400000)
  run_inlined()
end

return program
