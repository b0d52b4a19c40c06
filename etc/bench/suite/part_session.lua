----------------------------------------------------------------------------
-- Benchmark suite: what a profile takes besides the time of its samples: start
-- and stop, memory, bytes of the stream, reading it, size of the program.
----------------------------------------------------------------------------

local clocks = require("clocks")
local measure = require("measure")
local proc = require("proc")
local profilers = require("profilers")
local report = require("report")
local stacks = require("stacks")
local stat = require("stat")

local session = {}

-- Runs session.lua; returns lists of numbers, one for each line, or nil and why.
local function run(suite, ...)
  local out = suite.work .. "/session"
  local ok, why = proc.run({ suite.luajit, suite.here .. "/session.lua", ... },
			   { out = out, err = out .. ".err", seconds = 120 })
  if not ok then return nil, why end
  local lines = {}
  for line in proc.read(out):gmatch("[^\n]+") do
    local numbers = {}
    for n in line:gmatch("%S+") do numbers[#numbers + 1] = tonumber(n) end
    lines[#lines + 1] = numbers
  end
  return lines
end

-- -- Start and stop --------------------------------------------------------

local function latency(suite)
  local t = report.table("latency", "Start and stop", [[
Milliseconds of real time in mode C, and the bytes that start writes. The first start in a process
studies the code of the VM.]], {
    { key = "vm", title = "VM" },
    { key = "first", title = "first start, ms", digits = 2, scale = 1e-3 },
    { key = "start", title = "start, ms", digits = 2, scale = 1e-3 },
    { key = "stop", title = "stop, ms", digits = 2, scale = 1e-3 },
    { key = "bytes", title = "bytes at start" } })
  local megabytes = suite.hasty and 5 or suite.quick and 50 or 500
  for _, vm in ipairs({ { "nothing loaded", 0, 0 }, { "50,000 functions", 50000, 0 },
			{ megabytes .. " MB of tables", 0, megabytes } }) do
    local lines, why = run(suite, "latency", tostring(vm[2]), tostring(vm[3]),
			   suite.hasty and "3" or suite.quick and "5" or "21", suite.work .. "/session.bin")
    if lines then
      local starts, stops = {}, {}
      for i, line in ipairs(lines) do
	if i > 1 then starts[#starts + 1] = line[1] end
	stops[i] = line[2]
      end
      t.rows[#t.rows + 1] = { vm = vm[1], first = lines[1][1], start = stat.summary(starts),
			      stop = stat.summary(stops), bytes = lines[1][3] }
    else
      report.miss(t, vm[1], why)
    end
  end
  return t
end

-- -- Memory ----------------------------------------------------------------

local function memory(suite, clock)
  local t = report.table("memory", "Memory", [[
KiB of private resident memory that a profile in mode C at 1 kHz adds, less what the same program
without it adds in that time; of several processes.]], {
    { key = "when", title = "when" }, { key = "kib", title = "KiB", digits = 0 } })
  local found = { {}, {}, {} }
  local seconds = suite.hasty and "0.2" or suite.quick and "0.5" or "3"
  for _ = 1, suite.hasty and 1 or suite.quick and 2 or 5 do
    local on, why = run(suite, "memory", seconds, clock, suite.work .. "/session.bin")
    local off = on and run(suite, "memory", seconds, "off", "-")
    if not off then
      report.miss(t, "memory", why or "the run without the profiler failed")
      return t
    end
    for i = 1, 3 do
      table.insert(found[i], on[1][i + 1] - on[1][1] - (off[1][i + 1] - off[1][1]))
    end
  end
  for i, when in ipairs({ "started", "some seconds later", "stopped" }) do
    t.rows[i] = { when = when, kib = stat.summary(found[i]) }
  end
  return t
end

-- -- Stream ----------------------------------------------------------------

local function stream(suite)
  local t = report.table("stream", "Stream", [[
Size of a profile in mode C with JIT, all included. A short one is mostly names.]], {
    { key = "program", title = "program" }, { key = "rate", title = "rate" },
    { key = "samples", title = "samples" },
    { key = "second", title = "bytes a second" },
    { key = "sample", title = "bytes a sample", digits = 1 } })
  local rates = clocks.rates()
  for _, program in ipairs(suite.programs) do
    for _, rate in ipairs({ rates[1], rates[2] }) do
      local result, why = measure.run(suite, {
	program = program, jit = "on", kinds = rate.ours, seconds = 0,
	collect = suite.hasty and 0.1 or suite.quick and 0.3 or 2 })
      if result then
	local got = result.collected[rate.ours]
	local path = profilers.path(result.folder, rate.ours, got.number)
	local samples, _, bytes = stacks.ours(path)
	t.rows[#t.rows + 1] = { program = program, rate = rate.title, samples = samples,
	  second = bytes / got.wall * 1e9, sample = samples > 0 and bytes / samples or nil }
      else
	report.miss(t, program, why)
      end
    end
    if suite.quick then break end
  end
  return t
end

-- -- Reader ----------------------------------------------------------------

local function read_speed(suite)
  local t = report.table("reader", "Reader", [[
Streams of made-up stacks, see etc/bench/reader.lua: ours, and one with a whole stack in each sample,
as Tarantool's.]], {
    { key = "stream", title = "stream" }, { key = "megabytes", title = "MB" },
    { key = "speed", title = "MB/s", digits = 1 },
    { key = "samples", title = "million samples/s", digits = 2 },
    { key = "peak", title = "peak memory, MiB", digits = 1 } })
  local megabytes = suite.hasty and 1 or suite.quick and 10 or 100
  local script, path = suite.source .. "/etc/bench/reader.lua", suite.work .. "/stream"
  for _, kind in ipairs({ "chunks", "full" }) do
    local out = suite.work .. "/reader"
    local ok, why = proc.run({ suite.luajit, script, "generate", kind, path, tostring(megabytes),
			       "5000" }, { err = out .. ".err", seconds = 120 })
    local found = { speed = {}, samples = {}, peak = {} }
    for _ = 1, ok and (suite.quick and 1 or 5) or 0 do
      ok, why = proc.run({ suite.luajit, script, "read", path },
			 { out = out, err = out .. ".err", seconds = 120 })
      local speed, samples, peak = (ok and proc.read(out) or ""):match(
	"([%d.]+) MB/s%s+([%d.]+) Msamples/s.*peak%s+([%d.]+) MiB")
      if not speed then
	ok, why = nil, why or "its output is not known"
	break
      end
      table.insert(found.speed, tonumber(speed))
      table.insert(found.samples, tonumber(samples))
      table.insert(found.peak, tonumber(peak))
    end
    os.remove(path)
    if ok then
      t.rows[#t.rows + 1] = { stream = kind, megabytes = megabytes,
	speed = stat.summary(found.speed), samples = stat.summary(found.samples),
	peak = stat.summary(found.peak) }
    else
      report.miss(t, kind, why)
    end
  end
  return t
end

-- -- Binary ----------------------------------------------------------------

-- Bytes of code and data, as size(1) counts, nil without it.
local function sections(suite, path)
  local out = suite.work .. "/size"
  if not proc.run({ "size", path }, { out = out, seconds = 20 }) then return nil end
  local code, data, bss = proc.read(out):match("\n%s*(%d+)%s+(%d+)%s+(%d+)")
  return code and code + data + bss
end

-- The tree of LuaJIT that the build is made from, nil if it is not found.
local function base_tree(suite)
  local cache = proc.read(suite.build .. "/CMakeCache.txt") or ""
  local given = cache:match("\nLUAJIT_SOURCE_DIR:PATH=([^\n]+)")
  if given then return given end
  local package = cache:match("\nLUAJIT_PACKAGE:STRING=([^\n]+)")
  for _, name in ipairs(package and { package } or { "luajit2", "luajit" }) do
    local tree = suite.build .. "/luajit/base/" .. name .. "/tree"
    if proc.size(tree .. "/src/lj_obj.h") then return tree end
  end
end

-- The same without the profiler.
local function build_disabled(suite)
  local base = base_tree(suite)
  if not base then return nil, "the LuaJIT of the build is not found" end
  local to, log = suite.work .. "/disabled", suite.work .. "/disabled.log"
  local ok, why = proc.run({ "cmake", "-S", suite.source, "-B", to, "-DLUAJIT_SOURCE_DIR=" .. base,
    "-DLUAJIT_DISABLE_SYSPROF=ON", "-DBUILD_TESTING=OFF" }, { out = log, err = log, seconds = 120 })
  if ok then
    ok, why = proc.run({ "cmake", "--build", to }, { out = log, err = log, seconds = 600 })
  end
  return ok and to, why
end

local function binaries(suite)
  local t = report.table("binary", "Binaries", [[
Bytes of the program and of the library: of the file, symbols included, and of code and data.]], {
    { key = "build", title = "build" }, { key = "program", title = "luajit" },
    { key = "program_sections", title = "code and data" },
    { key = "library", title = "libluajit-5.1.so.2" },
    { key = "library_sections", title = "code and data" } })
  local function add(name, folder)
    local program, library = folder .. "/bin/luajit", folder .. "/lib/libluajit-5.1.so.2"
    if not proc.size(program) then return report.miss(t, name, "there is no " .. program) end
    t.rows[#t.rows + 1] = { build = name, program = proc.size(program),
      program_sections = sections(suite, program), library = proc.size(library),
      library_sections = sections(suite, library) }
  end
  add("default", suite.build)
  if suite.quick then
    report.miss(t, "LUAJIT_DISABLE_SYSPROF", "it is built only if there is more time")
  else
    local disabled, why = build_disabled(suite)
    if disabled then add("LUAJIT_DISABLE_SYSPROF", disabled)
    else report.miss(t, "LUAJIT_DISABLE_SYSPROF", why) end
  end
  add("plain LuaJIT", suite.build .. "/plain")
  return t
end

function session.run(suite)
  local clock, why = clocks.first({ "task-clock", "wall" })
  if not clock then
    local t = report.table("session", "Sessions", "", {})
    report.miss(t, "sysprof", why)
    return { t }
  end
  return { latency(suite), memory(suite, clock), stream(suite),
	   read_speed(suite), binaries(suite) }
end

return session
