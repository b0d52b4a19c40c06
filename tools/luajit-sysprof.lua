----------------------------------------------------------------------------
-- luajit-sysprof: profiles a script from its beginning to its end, and prints profiles.
--
-- The script runs in the luajit program, in a process of its own: it behaves and ends
-- as without a profile (sysprof.cli.launch). That process writes the profile; the
-- command renders it.
----------------------------------------------------------------------------

local PROGRAM = "luajit-sysprof"

local here = arg and arg[0] and arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local child = require("sysprof.cli.child")
local command = require("sysprof.cli.command")
local events = require("sysprof.model.events")
local input = require("sysprof.read.input")
local launch = require("sysprof.cli.launch")
local options = require("sysprof.cli.options")
local progress = require("sysprof.cli.progress")
local reader = require("sysprof.read.reader")
local report = require("sysprof.cli.report")
local selfreport = require("sysprof.show.selfreport")
local text = require("sysprof.base.text")
local top = require("sysprof.formats.top")
local view = require("sysprof.show.view")

local INTERVAL_MS = 1
local DEFAULT_OUTPUT = "sysprof.bin"
local HOTTEST = 5	-- Functions in the summary.

-- Formats by the endings of files; the longest that fits counts. "bin" is the
-- profile as it is.
local ENDINGS = {
  { ".bin", "bin" }, { ".folded", "folded" }, { ".html", "flamegraph" },
  { ".svg", "svg" }, { ".pb.gz", "pprof" }, { ".pprof", "pprof" },
  { ".speedscope.json", "speedscope" }, { ".gecko.json", "gecko" },
  { ".json", "json" }, { ".tree", "tree" }, { ".txt", "top" },
}

-- The formats, once each, and the endings.
local FORMATS, endings_text = {}, {}
for i, ending in ipairs(ENDINGS) do
  local format = ending[2]
  endings_text[i] = ending[1]
  if not FORMATS[format] then
    FORMATS[format], FORMATS[#FORMATS + 1] = true, format
  end
end

local function to_interval(s)
  local ms = s:find("^%d*%.?%d+$") and tonumber(s)
  if ms and ms >= 0.01 and ms <= 86400000 then return ms end
  return nil, "milliseconds, 0.01 to 86400000"
end

local function to_hz(s)
  local hz = s:find("^%d*%.?%d+$") and tonumber(s)
  if hz and hz >= 0.001 and hz <= 1e5 then return hz end
  return nil, "samples a second, 0.001 to 100000"
end

local function to_period(s)
  local n = s:find("^%d+$") and tonumber(s)
  if n and n >= 1 and n < 2^53 then return n end
  return nil, "a whole number of occurrences, at least 1"
end

-- Which signals there are is known to the profiler.
local function to_signal(s)
  if s:find("^%d+$") and #s <= 3 then return tonumber(s) end
  s = s:upper()
  if s:find("^%u[%u%d+-]*$") then return s:find("^SIG") and s or "SIG" .. s end
  return nil, "a signal, such as SIGUSR2"
end

-- start: misc.sysprof.start has an option of this key.
local SPECS = {
  { name = "output", short = "o", key = "output", arg = "FILE", help = {
    "write to FILE, default " .. DEFAULT_OUTPUT .. "; its ending gives the",
    "format: " .. table.concat(endings_text, " ", 1, math.min(5, #endings_text)),
    table.concat(endings_text, " ", math.min(6, #endings_text + 1)) } },
  { name = "format", key = "format", arg = "FORMAT", choice = FORMATS, help = {
    "this format, whatever the ending: " .. table.concat(FORMATS, " ", 1, 4),
    table.concat(FORMATS, " ", 5) } },
  { name = "interval", short = "i", key = "interval", start = true, arg = "MS",
    convert = to_interval, help = {
    ("milliseconds between samples, default %d, or the"):format(INTERVAL_MS),
    "kernel's tick if interrupts would take over 2 %" } },
  { name = "hz", key = "hz", start = true, arg = "N", convert = to_hz, help = {
    "samples a second, instead of the interval" } },
  { name = "clock", key = "clock", start = true, arg = "LIST", help = {
    "cpu: CPU time (default); wall: CPU time and waits;",
    "offcpu: waits, and for what, without waking threads;",
    "coroutine-wait: waits of coroutines, and where;",
    "alloc: allocations of memory, and who makes them;",
    "events, such as page-faults or cycles. Separate",
    "several by commas" } },
  { name = "period", key = "period", start = true, arg = "N", convert = to_period, help = {
    "occurrences of an event, or bytes of alloc, between",
    "two samples" } },
  { name = "threads", key = "all_threads", help = { "sample all threads of the process" } },
  { name = "fork", key = "fork", start = true, help = { "also profile children that the script forks" } },
  { name = "gc", key = "gc", start = true, help = {
    "collect garbage before the end, so that live has none" } },
  { name = "signal", key = "signal", start = true, arg = "SIGNAL", convert = to_signal, help = {
    "the profiler's signal; default: one that the program",
    "does not handle" } },
  { name = "flush", key = "flush", start = true, arg = "WHERE", choice = { "vm", "thread" }, help = {
    "who writes the profile: thread (default), once a",
    "second; vm: the program stays single-threaded" } },
  { name = "force", key = "force", start = true, help = {
    "let a profile overwrite a FILE that is not a profile" } },
  { name = "follow", key = "follow", start = true, help = {
    "follow another user's link in a folder where other",
    "users may write" } },
  { name = "jitter", key = "jitter", start = true, help = { "vary the interval at random" } },
  { name = "mode", key = "mode", start = true, arg = "MODE", choice = { "C", "L" }, help = {
    "C: whole stacks (default), L: their innermost frames" } },
  { name = "event", key = "event", arg = "NAME", help = {
    "show this one of several clocks or events" } },
  { name = "weight", key = "weight", arg = "UNIT",
    choice = { "samples", "event", "cpu", "bytes", "objects", "waits" }, help = {
    "samples: count samples (default); event: sum their",
    "weights, such as CPU time, bytes (default for alloc);",
    "cpu, bytes: the same; objects (of alloc), waits (of",
    "offcpu and coroutine-wait): count them" } },
  { name = "lines", key = "lines", help = { "name Lua frames by current lines" } },
  { name = "traces", key = "traces", help = { "show compiled code as [trace N]" } },
  { name = "no-host", key = "no_host", help = { "leave out host frames" } },
  { name = "no-lua", key = "no_lua", help = { "leave out Lua frames" } },
  { short = "j", key = "j", arg = "CMD", list = true, help = {
    "option of luajit, like -O and -l" } },
  { short = "O", key = "O", arg = "OPT", list = true, help = { "option of luajit" } },
  { short = "l", key = "l", arg = "NAME", list = true, help = { "option of luajit" } },
  { name = "help", short = "h", key = "help", help = { "show this help" } },
  { name = "version", key = "version", help = { "show the versions of sysprof and LuaJIT" } },
  command.COMPLETION,
}

local HELP_HEAD = [[
Usage: luajit-sysprof run [options] SCRIPT [ARG...]
       luajit-sysprof report [options] FILE...

'run' profiles the Lua script SCRIPT from beginning to end and writes the profile.
SCRIPT "-" is standard input. A summary goes to standard error.
'report' prints profiles; 'luajit-sysprof report --help' shows its options.

Options of 'run':

]]

local HELP_TAIL = [[

Exit status: that of the script; 1 if the script succeeded and its profile could not
be written, or if the profiler could not start; 2 wrong command line.
]]

local this = command.new(PROGRAM)
local say = this.say

-- -- The profile -----------------------------------------------------------

-- Prints a summary of the samples, and the hottest functions of those shown. paths: of
-- the profiles of the script and its children.
local function summary(shown_view, paths, opt)
  local profile, path = shown_view.profile, opt.output
  say(selfreport.totals(profile), ", written to ", path)
  if shown_view:one_of_several() then
    local counts = {}
    for i, e in ipairs(events.list(profile)) do
      counts[i] = e.name .. " " .. selfreport.samples(e)
    end
    say("samples of each event: ", table.concat(counts, ", "), "; shown: ", shown_view.event.name)
  end
  for i = 2, #paths do
    say("with the profile of a child", opt.format == "bin" and ", " .. paths[i] or "")
  end
  if profile.meta.limit then say(text.clean(profile.meta.limit)) end
  local lost, lost_text = selfreport.lost(profile)
  if lost > 0 then say("warning: samples lost: ", lost_text) end
  if not profile.complete then say("warning: ", profile:problem_text()) end
  if shown_view:room_text() then say("warning: ", shown_view:room_text()) end
  local rows, sum = top.count(shown_view)
  table.sort(rows, function(a, b)
    if a.self ~= b.self then return a.self > b.self end
    return a.entry.text < b.entry.text
  end)
  for i = 1, math.min(#rows, HOTTEST) do
    if rows[i].self == 0 then break end
    io.stderr:write(("%7.1f%%  %s\n"):format(100 * rows[i].self / sum, rows[i].entry.text))
  end
end

-- Reads the profiles of the script and its children, and writes the requested output.
-- Returns true, or nil and a message.
local function finish(paths, format, opt)
  local renderer = format ~= "bin" and require("sysprof.formats." .. format) or {}
  local profile, err = reader.read_all(paths, { timeline = renderer.needs_timeline,
						activity = renderer.needs_activity,
						progress = progress.new() })
  if not profile then return nil, "the profile is missing: " .. err end
  opt.limit = 60
  local shown_view, ok
  shown_view, err = view.new(profile, opt)
  if not shown_view then return nil, err end
  opt.title = shown_view:default_title(opt.script)
  if format ~= "bin" then
    ok, err = command.output(opt.output, function(write)
      renderer.render(shown_view, write)
    end)
    if not ok then return nil, err end
  end
  summary(shown_view, paths, opt)
  return true
end

-- -- Main ------------------------------------------------------------------

-- Returns the format that the ending of a file name stands for, or nil.
local function format_of(path)
  local found, len
  for _, ending in ipairs(ENDINGS) do
    local tail = ending[1]
    if path:sub(-#tail) == tail and #tail > (len or 0) then
      found, len = ending[2], #tail
    end
  end
  return found
end

-- An output that cannot be written is found before the script has run: a profile by
-- the profiler, another format here. Returns true and whether the file is new, or nil
-- and a message.
local function check_output(path)
  local there = io.open(path, "rb")
  if there then there:close() end
  local file, err = io.open(path, "ab")
  if not file then return nil, "cannot write " .. err end
  file:close()
  return true, not there
end

-- Returns the options of misc.sysprof.start for a profile at a path.
local function start_options(opt, path)
  local start = { path = path }
  for _, spec in ipairs(SPECS) do
    if spec.start then start[spec.key] = opt[spec.key] end
  end
  start.mode, start.flush = opt.mode or "C", opt.flush or "thread"
  start.threads = opt.all_threads and "all" or nil
  if not (opt.interval or opt.hz) then start.interval, start.prefer_tick = INTERVAL_MS, true end
  return start
end

-- Returns the list of options for luajit.
local function luajit_options(opt)
  local list = {}
  for _, letter in ipairs { "j", "O", "l" } do
    for _, value in ipairs(opt[letter] or {}) do list[#list + 1] = "-" .. letter .. value end
  end
  return list
end

-- Returns the paths of the profiles of a script and of its children; before: files
-- of children from before the run.
local function profiles(opt, path, before)
  local list, old = { path }, {}
  for _, name in ipairs(before) do old[name] = true end
  for _, name in ipairs(opt.fork and launch.profiles_of_children(path) or {}) do
    if not old[name] then list[#list + 1] = name end
  end
  return list
end

local function run(opt, rest)
  local format = opt.format
  local ok, err, is_new, path = true, nil, false, opt.output
  if format ~= "bin" then
    ok, err = check_output(opt.output)
    is_new = ok and err
    if ok then path, err = launch.temporary() end
  end
  if not ok or not path then
    say(err)
    return command.FAILED
  end
  local before = launch.profiles_of_children(path)
  local status, signo, why = launch.run(start_options(opt, path), luajit_options(opt), rest)
  local paths = profiles(opt, path, before)
  if why then
    say(why)
    if format ~= "bin" then os.remove(path) end
    if is_new then os.remove(opt.output) end
    status = status ~= command.OK and status or command.FAILED
  else
    ok, err = finish(paths, format, opt)
    if not ok then say(err) end
    for _, name in ipairs(format ~= "bin" and paths or {}) do
      if ok then os.remove(name) else say("the profile is kept in ", name) end
    end
  end
  if signo then child.die(signo) end
  return status == command.OK and not ok and command.FAILED or status
end

-- Runs the verb that prints profiles.
local function main_of_report(args)
  local name = PROGRAM .. " report"
  return report.main(command.new(name), name, "top", report.SPECS, args)
end

local function main(args)
  if args[1] == "report" then
    table.remove(args, 1)
    return main_of_report(args)
  end
  local is_run = args[1] == "run" and table.remove(args, 1)
  local opt, rest = options.parse(SPECS, args, true)
  if not opt then return this.usage_error(rest) end
  local status = this.answer(opt, SPECS, HELP_HEAD, HELP_TAIL, "run", { report = report.SPECS })
  if status then
    return status
  elseif not is_run then
    return this.usage_error(("expected the command 'run' or 'report', got %s")
			    :format(args[1] and "'" .. args[1] .. "'" or "nothing"))
  elseif #rest == 0 then
    return this.usage_error("expected a SCRIPT")
  elseif opt.no_host and opt.no_lua then
    return this.usage_error("--no-host and --no-lua leave nothing")
  elseif opt.interval and opt.hz then
    return this.usage_error("--interval and --hz both set the rate; remove one")
  end
  opt.output = opt.output or DEFAULT_OUTPUT
  opt.format = opt.format or format_of(opt.output)
  if not opt.format then
    return this.usage_error(("'%s' has no known ending; expected %s, or --format")
			    :format(opt.output, table.concat(endings_text, " ")))
  end
  opt.script = rest[1]
  if input.is_same(opt.output, opt.script) then
    return this.usage_error("script and output are the same file")
  end
  return run(opt, rest)
end

local arguments = {}
for i = 1, #arg do arguments[i] = arg[i] end
this.run(main, arguments)
