----------------------------------------------------------------------------
-- Options of 'run': what is recorded, and how it is shown.
----------------------------------------------------------------------------

local endings = require("sysprof.formats.endings")
local viewspecs = require("sysprof.cli.viewspecs")

local OUTPUT = "sysprof.bin"
local LIMIT = 60	-- Rows of a table.
local FORMATS = { "bin", unpack(endings.FORMATS) }

local TIMES = { [""] = 1, s = 1, ms = 1e-3, m = 60, min = 60, h = 3600 }
local MILLISECONDS = { [""] = 1, us = 1e-3, ms = 1, s = 1e3 }
local SIZES = { [""] = 1, k = 2^10, m = 2^20, g = 2^30 }

-- Returns the value of a number with a unit, or nil.
local function with_unit(s, units)
  local digits, unit = s:match("^(%d*%.?%d+)(%a*)$")
  local factor = unit and units[unit]
  return factor and tonumber(digits) * factor
end

-- Returns the value of a number with a unit of size, or nil.
local function size_of(s)
  return with_unit(s:lower():gsub("i?b$", ""), SIZES)
end

local function to_interval(s)
  local ms = with_unit(s, MILLISECONDS)
  if ms and ms >= 0.01 and ms <= 86400000 then return ms end
  return nil, "milliseconds, 0.01 to 86400000, or a time such as 500us"
end

local function to_hz(s)
  local hz = s:find("^%d*%.?%d+$") and tonumber(s)
  if hz and hz >= 0.001 and hz <= 1e5 then return hz end
  return nil, "samples a second, 0.001 to 100000"
end

local function to_period(s)
  local n = size_of(s)
  if n and n >= 1 and n < 2^53 and n % 1 == 0 then return n end
  return nil, "a whole number of occurrences, or of bytes of alloc, such as 1000 or 512K"
end

-- Which signals there are is known to the profiler.
local function to_signal(s)
  if s:find("^%d+$") and #s <= 3 then return tonumber(s) end
  s = s:upper()
  if s:find("^%u[%u%d+-]*$") then return s:find("^SIG") and s or "SIG" .. s end
  return nil, "a signal, such as SIGUSR2"
end

local function to_duration(s)
  local n = with_unit(s, TIMES)
  if n and n >= 1e-3 and n <= 1e9 then return n end
  return nil, "a time such as 10s, 500ms or 2m"
end

local function to_delay(s)
  local n = with_unit(s, TIMES)
  if n and n <= 1e9 then return n end
  return nil, "a time such as 10s, 500ms or 2m"
end

local function to_size(s)
  local n = size_of(s)
  n = n and math.floor(n)
  if n and n >= 2^18 and n <= 2^53 then return n end
  return nil, "a size such as 512M or 2G, at least 256K"
end

-- start: misc.sysprof.start has an option of this key.
local SPECS = {
  { name = "output", short = "o", key = "output", arg = "FILE",
    brief = "write to FILE: .html .svg .txt .folded .pb.gz .bin", help = {
    "write to FILE, default " .. OUTPUT .. "; its ending gives the",
    "format: .bin .html .svg .txt .folded .pb.gz .json .tree",
    ".pprof .speedscope.json .gecko.json" } },
  { name = "format", key = "format", arg = "FORMAT", choice = FORMATS, aliases = endings.ALIASES, help = {
    "this format, whatever the ending: " .. table.concat(FORMATS, " ", 1, 4),
    table.concat(FORMATS, " ", 5) } },
  { name = "event", short = "e", key = "event", arg = "LIST", joined = true,
    brief = "record cpu (default), wall, offcpu, alloc, ...", help = {
    "cpu: CPU time (default); wall: CPU time and waits;",
    "offcpu: waits, and for what, without waking threads;",
    "coroutine-wait: waits of coroutines, and where;",
    "alloc: allocations of memory, and who makes them;",
    "events, such as page-faults or cycles. Separate",
    "several by commas, or repeat the option" } },
  { name = "clock", key = "clock", start = true, arg = "LIST", joined = true, help = {
    "the same as --event; beside it, --event names the one",
    "that is shown" } },
  { name = "interval", short = "i", key = "interval", start = true, arg = "MS",
    convert = to_interval, help = {
    "milliseconds, or a time such as 500us, between samples;",
    "default 10" } },
  { name = "hz", short = "F", key = "hz", start = true, arg = "N", convert = to_hz,
    brief = "samples a second, default 100", help = {
    "samples a second, instead of the interval" } },
  { name = "duration", short = "d", key = "duration", start = true, arg = "TIME", convert = to_duration,
    brief = "record for 10s, 500ms, 2m; the script goes on", help = {
    "record for this time, such as 10s, 500ms or 2m; then the",
    "profile is complete, and the script goes on" } },
  { name = "delay", key = "delay", start = true, arg = "TIME", convert = to_delay, help = {
    "begin to record after this time" } },
  { name = "max-size", key = "max_size", start = true, arg = "SIZE", convert = to_size, help = {
    "end the profile before its file is larger, such as 512M" } },
  { name = "period", key = "period", start = true, arg = "N", convert = to_period, help = {
    "occurrences of an event, or bytes of alloc, between",
    "two samples, such as 1000 or 512K" } },
  { name = "threads", key = "all_threads", brief = "sample all threads of the process", help = {
    "sample all threads of the process" } },
  { name = "fork", key = "fork", start = true, brief = "also profile forked children",
    help = { "also profile children that the script forks" } },
  { name = "gc", key = "gc", start = true, help = {
    "collect garbage before the end, so that the event",
    "'live' has none" } },
  { name = "signal", key = "signal", start = true, arg = "SIGNAL", convert = to_signal, help = {
    "the profiler's signal; default: one that the program",
    "does not handle" } },
  { name = "flush", key = "flush", start = true, arg = "WHERE", choice = { "vm", "thread" }, help = {
    "who writes the profile: thread (default), once a",
    "second; vm: the program stays single-threaded" } },
  { name = "backtracer", key = "backtracer", start = true, arg = "NAME", choice = { "own", "libunwind" }, help = {
    "own (default); libunwind: also walk C code that has",
    ".debug_frame only" } },
  { name = "force", key = "force", start = true, help = {
    "overwrite a FILE that sysprof did not write" } },
  { name = "follow", key = "follow", start = true, help = {
    "follow another user's link in a folder where other",
    "users may write" } },
  { name = "jitter", key = "jitter", start = true, help = { "vary the interval at random" } },
  { name = "mode", key = "mode", start = true, arg = "MODE", choice = { "C", "L" }, help = {
    "C: whole stacks (default), L: their innermost frames" } },
  setmetatable({ others = false }, { __index = viewspecs.WEIGHT }),
  { name = "lines", key = "lines", brief = "name Lua frames by their current lines",
    help = { "name Lua frames by their current lines" } },
  { name = "traces", key = "traces", help = { "show compiled code as [trace N]" } },
  { name = "no-host", key = "no_host", help = { "leave out C frames" } },
  { name = "no-lua", key = "no_lua", help = { "leave out Lua frames" } },
  { short = "j", key = "j", arg = "CMD", list = true, help = {
    "option of luajit, like -O and -l" } },
  { short = "O", key = "O", arg = "OPT", list = true, help = { "option of luajit" } },
  { short = "l", key = "l", arg = "NAME", list = true, help = { "option of luajit" } },
  { name = "help", short = "h", key = "help", brief = "this; --help shows all options",
    help = { "show this help; -h: the common options" } },
  { name = "version", key = "version", help = { "show the versions of sysprof and LuaJIT" } },
}

local runspecs = { SPECS = SPECS, OUTPUT = OUTPUT, LIMIT = LIMIT }

-- Returns the specifications with some keys. texts: by key, the fields that differ.
function runspecs.of(keys, texts)
  local wanted, list = {}, {}
  for _, key in ipairs(keys) do wanted[key] = true end
  for _, spec in ipairs(SPECS) do
    if wanted[spec.key] then list[#list + 1] = spec end
  end
  return viewspecs.with(list, texts)
end

return runspecs
