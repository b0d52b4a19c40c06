----------------------------------------------------------------------------
-- Part "session" of the benchmark suite: the handler by depth of the stacks, start and
-- stop, memory, bytes of the stream, the reader, size of the program.
----------------------------------------------------------------------------

local clocks = require("clocks")
local measure = require("measure")
local proc = require("proc")
local profilers = require("profilers")
local report = require("report")
local stacks = require("stacks")
local stat = require("stat")

local session = {}

-- Runs a program in the folder for temporary files. Returns its output, whatever its
-- status, or nil and why.
local function output(suite, ...)
  local out = suite.work .. "/printed"
  proc.wait(proc.start({ "sh", "-c", 'cd "$0" && exec "$@"', suite.work, ... },
		       { out = out, err = out .. ".err", seconds = 300 }))
  local printed = proc.read(out)
  if printed ~= "" then return printed end
  return nil, (proc.read(out .. ".err") or ""):match("([^\n]+)%s*$") or "it printed nothing"
end

-- -- The handler -----------------------------------------------------------

local HANDLER_KEYS = { "mode", "lua", "host", "whole", "clocks", "host_walk", "lua_walk", "rest",
		       "instructions" }

-- Runs etc/bench/handler, which prints a line for each depth: nanoseconds, instructions.
local function handler(suite)
  local t = report.table("handler", "The handler", [[
Nanoseconds of one sample in the handler, by the depth of both stacks, with warm caches: the whole and its
parts. The kernel's work for a signal is not included.]], {
    { key = "mode", title = "mode" }, { key = "lua", title = "Lua frames" },
    { key = "host", title = "host frames" }, { key = "whole", title = "all, ns" },
    { key = "clocks", title = "clocks" }, { key = "host_walk", title = "host stack" },
    { key = "lua_walk", title = "Lua stack" }, { key = "rest", title = "rest" },
    { key = "instructions", title = "all, instructions" } })
  local printed, why = output(suite, "bash", suite.source .. "/etc/bench/handler", suite.build,
			      suite.hasty and "100" or "2000")
  for line in (printed or ""):gmatch("[^\n]+") do
    local row, at = {}, 0
    for word in line:gmatch("[^%s|]+") do
      at = at + 1
      if HANDLER_KEYS[at] then row[HANDLER_KEYS[at]] = tonumber(word) or word end
    end
    if type(row.whole) == "number" then t.rows[#t.rows + 1] = row end
  end
  if #t.rows == 0 then report.miss(t, "etc/bench/handler", why or "its output is not known") end
  return t
end

-- -- Start and stop --------------------------------------------------------

local START_KEYS = { "start", "start_cpu", "start_first", "stop", "stop_cpu", "stop_first" }

-- Runs etc/bench/start, which prints a line for each kind of process.
local function latency(suite)
  local t = report.table("latency", "Start and stop", [[
Milliseconds in mode C: real time, CPU time, and CPU time of the first profile in the process. Heap:
50,000 functions and 500 MB of tables. Libraries: 300 MB with 600,000 symbols.]], {
    { key = "process", title = "process" },
    { key = "start", title = "start", digits = 2 },
    { key = "start_cpu", title = "CPU", digits = 2 },
    { key = "start_first", title = "first, CPU", digits = 2 },
    { key = "stop", title = "stop", digits = 2 },
    { key = "stop_cpu", title = "CPU", digits = 2 },
    { key = "stop_first", title = "first, CPU", digits = 2 } })
  local printed, why
  if suite.quick then
    printed, why = output(suite, suite.luajit, suite.source .. "/etc/bench/start.lua", "empty",
			  suite.hasty and "3" or "11")
    report.miss(t, "heap and libraries", "they are measured only if there is more time")
  else
    printed, why = output(suite, "bash", suite.source .. "/etc/bench/start", suite.build, "11")
  end
  for line in (printed or ""):gmatch("[^\n]+") do
    local row, at = { process = line:match("^(%a+)%s+start") }, 0
    for number in line:gmatch("[%d.]+") do
      at = at + 1
      if START_KEYS[at] then row[START_KEYS[at]] = tonumber(number) end
    end
    if row.process then t.rows[#t.rows + 1] = row end
  end
  if #t.rows == 0 then report.miss(t, "etc/bench/start", why or "its output is not known") end
  return t
end

-- -- Memory ----------------------------------------------------------------

-- Runs memory.lua; returns the numbers that it prints, or nil and why.
local function resident(suite, seconds, clock)
  local printed, why = output(suite, suite.luajit, suite.here .. "/memory.lua", seconds, clock,
			      suite.work .. "/memory.bin")
  if not printed then return nil, why end
  local numbers = {}
  for n in printed:gmatch("%d+") do numbers[#numbers + 1] = tonumber(n) end
  return numbers
end

local function memory(suite, clock)
  local t = report.table("memory", "Memory", [[
KiB of private resident memory that a profile in mode C at 1 kHz adds, in several processes. The growth of
the same program without a profile is subtracted.]], {
    { key = "when", title = "when" }, { key = "kib", title = "KiB", digits = 0 } })
  local found = { {}, {}, {} }
  local seconds = suite.hasty and "0.2" or suite.quick and "0.5" or "2"
  for _ = 1, suite.hasty and 1 or suite.quick and 2 or 3 do
    local on, why = resident(suite, seconds, clock)
    local off = resident(suite, seconds, "off")
    if not on or not off then
      report.miss(t, "memory", why or "the run without the profiler failed")
      return t
    end
    for i = 1, 3 do table.insert(found[i], on[i + 1] - on[1] - (off[i + 1] - off[1])) end
  end
  for i, when in ipairs({ "started", "some seconds later", "stopped" }) do
    t.rows[i] = { when = when, kib = stat.summary(found[i]) }
  end
  return t
end

-- -- Stream ----------------------------------------------------------------

local function stream(suite)
  local t = report.table("stream", "Stream", [[
Size of a whole profile in mode C with JIT. A short profile holds mostly names.]], {
    { key = "program", title = "program" }, { key = "rate", title = "rate" },
    { key = "samples", title = "samples" },
    { key = "second", title = "bytes a second" },
    { key = "sample", title = "bytes a sample", digits = 1 } })
  local rates = clocks.rates()
  for _, program in ipairs(suite.programs) do
    for _, rate in ipairs({ rates[1], rates[2] }) do
      local result, why = measure.run(suite, {
	program = program, jit = "on", kinds = rate.ours, seconds = 0,
	collect = suite.hasty and 0.1 or suite.quick and 0.3 or 1 })
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
Streams of made-up stacks, see etc/bench/reader.lua: ours, whose chunks keep the stacks of those before (kept) or
define all they use (chunks), and one with a whole stack in each sample, like Tarantool's (full).]], {
    { key = "stream", title = "stream" }, { key = "megabytes", title = "MB" },
    { key = "speed", title = "MB/s", digits = 1 },
    { key = "samples", title = "million samples/s", digits = 2 },
    { key = "peak", title = "peak memory, MiB", digits = 1 } })
  local megabytes = suite.hasty and 1 or suite.quick and 10 or 100
  local script, path = suite.source .. "/etc/bench/reader.lua", suite.work .. "/stream"
  for _, kind in ipairs({ "kept", "chunks", "full" }) do
    local out = suite.work .. "/reader"
    -- Samples of kept stacks are a tenth as long.
    local size = kind == "kept" and math.ceil(megabytes / 3) or megabytes
    local ok, why = proc.run({ suite.luajit, script, "generate", kind, path, tostring(size),
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
      t.rows[#t.rows + 1] = { stream = kind, megabytes = size,
	speed = stat.summary(found.speed), samples = stat.summary(found.samples),
	peak = stat.summary(found.peak) }
    else
      report.miss(t, kind, why)
    end
  end
  return t
end

-- -- Binary ----------------------------------------------------------------

-- Bytes of code and data by size(1), nil if that is missing.
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

-- Builds LuaJIT without the profiler. Returns the build folder, or nil and why.
local function build_disabled(suite)
  local base = base_tree(suite)
  if not base then return nil, "the LuaJIT of the build is not found" end
  local to, log = suite.work .. "/disabled", suite.work .. "/disabled.log"
  local ok, why = proc.run({ "cmake", "-S", suite.source, "-B", to, "-DLUAJIT_SOURCE_DIR=" .. base,
    "-DLUAJIT_DISABLE_SYSPROF=ON" }, { out = log, err = log, seconds = 120 })
  if ok then
    ok, why = proc.run({ "cmake", "--build", to }, { out = log, err = log, seconds = 600 })
  end
  return ok and to, why
end

local function binaries(suite)
  local t = report.table("binary", "Binaries", [[
Bytes of the program and of the library: the file with its symbols, and code and data.]], {
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

function session.run(suite, _, add)
  local clock, why = clocks.first({ "task-clock", "wall-signal" })
  if not clock then
    local t = report.table("session", "Sessions", "", {})
    report.miss(t, "sysprof", why)
    return add(t)
  end
  for _, measure_table in ipairs({ handler, latency, memory, stream, read_speed, binaries }) do
    add(measure_table(suite, clock))
  end
end

return session
