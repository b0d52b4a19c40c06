----------------------------------------------------------------------------
-- luajit-sysprof: profiles a script from its beginning to its end.
--
-- The script runs in the luajit program itself, in a process of its own, so it
-- behaves and ends as without a profile. The profile is written by that process;
-- here it is only started, waited for, and then its profile rendered.
----------------------------------------------------------------------------

local PROGRAM = "luajit-sysprof"
local OK, FAILED, USAGE = 0, 1, 2

local here = arg and arg[0] and arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local ffi = require("ffi")
local G = require("sysprof.grammar")
local child = require("sysprof.child")
local options = require("sysprof.options")
local progress = require("sysprof.progress")
local reader = require("sysprof.reader")
local selfreport = require("sysprof.selfreport")
local top = require("sysprof.top")
local view = require("sysprof.view")

local INTERVAL_MS = 1
local DEFAULT_OUTPUT = "sysprof.bin"
local HOTTEST = 5	-- Functions in the summary.

-- The start of the profiler takes LUA_INIT out of our way.
local KEPT_INIT = "SYSPROF_RUN_LUA_INIT"

-- Formats by the endings of files; the longest that fits counts. "bin" is the
-- profile as it is.
local ENDINGS = {
  { ".bin", "bin" }, { ".folded", "folded" }, { ".html", "flamegraph" },
  { ".svg", "svg" }, { ".pb.gz", "pprof" }, { ".pprof", "pprof" },
  { ".speedscope.json", "speedscope" }, { ".gecko.json", "gecko" },
  { ".json", "json" }, { ".tree", "tree" }, { ".txt", "top" },
}

-- Formats that show samples one by one.
local NEEDS_TIMELINE = { speedscope = true, gecko = true, json = true }

local function exists(format)
  return format == "bin" or
	 package.searchpath("sysprof." .. format, package.path) ~= nil
end

-- What there is of the list above.
local FORMATS, endings_text = {}, {}
for _, ending in ipairs(ENDINGS) do
  local format = ending[2]
  if not exists(format) then format = nil end
  ending[2] = format
  if format then endings_text[#endings_text + 1] = ending[1] end
  if format and not FORMATS[format] then
    FORMATS[format], FORMATS[#FORMATS + 1] = true, format
  end
end

local function to_interval(s)
  local ms = s:find("^%d*%.?%d+$") and tonumber(s)
  if ms and ms >= 0.01 and ms <= 86400000 then return ms end
  return nil, "milliseconds, at least 0.01"
end

local SPECS = {
  { name = "output", short = "o", key = "output", arg = "FILE", help = {
    "write to FILE, default " .. DEFAULT_OUTPUT .. "; its ending gives the",
    "format: " .. table.concat(endings_text, " ", 1, math.min(5, #endings_text)),
    table.concat(endings_text, " ", math.min(6, #endings_text + 1)) } },
  { name = "format", key = "format", arg = "FORMAT", choice = FORMATS, help = {
    "this format, whatever the ending: " .. table.concat(FORMATS, " ", 1, 4),
    table.concat(FORMATS, " ", 5) } },
  { name = "interval", short = "i", key = "interval", arg = "MS",
    convert = to_interval, help = {
    ("milliseconds between samples, default %d"):format(INTERVAL_MS) } },
  { name = "clock", key = "clock", arg = "CLOCK", choice = { "cpu", "wall" }, help = {
    "cpu: time that the script computes (default);",
    "wall: also time that it waits" } },
  { name = "mode", key = "mode", arg = "MODE", choice = { "C", "L" }, help = {
    "C: whole stacks (default), L: their innermost frames" } },
  { name = "weight", key = "weight", arg = "UNIT", choice = { "samples", "cpu" },
    help = { "count samples (default), or cpu: microseconds of CPU time" } },
  { name = "lines", key = "lines", help = { "name Lua frames by current lines" } },
  { name = "traces", key = "traces", help = { "show compiled code as [trace N]" } },
  { name = "no-host", key = "no_host", help = { "leave out host frames" } },
  { name = "no-lua", key = "no_lua", help = { "leave out Lua frames" } },
  { short = "j", key = "j", arg = "CMD", list = true, help = {
    "for luajit, as are -O and -l" } },
  { short = "O", key = "O", arg = "OPT", list = true, help = { "for luajit" } },
  { short = "l", key = "l", arg = "NAME", list = true, help = { "for luajit" } },
  { name = "help", short = "h", key = "help", help = { "show this help" } },
  { name = "version", key = "version", help = { "show the version" } },
}

local HELP_HEAD = [[
Usage: luajit-sysprof run [options] SCRIPT [ARG...]

Runs the Lua script SCRIPT ("-" for standard input) with its arguments, profiles
it to its end and writes the profile. A summary goes to standard error.

]]

local HELP_TAIL = [[

Exit status: that of the script; 1 if the profile cannot be made or written and
the script did not fail itself, 2 for a wrong command line.
]]

local function say(...)
  io.stderr:write(PROGRAM, ": ", ...)
  io.stderr:write("\n")
end

-- -- The script ------------------------------------------------------------

-- Lua code that starts the profiler and leaves the script's arg table as it is
-- without us: n arguments of luajit are ours.
local START = [[
local ok, err = misc.sysprof.start{ mode = %q, interval = %s, clock = %q, path = %q }
if not ok then
  io.stderr:write("%s: cannot profile: ", err or "this luajit has no profiler", "\n")
  os.exit(%d)
end
local arg, i = arg, -1
repeat
  arg[i] = arg[i - %d]
  i = i - 1
until arg[i] == nil
]]

-- Path of the luajit program that runs us.
local function luajit_path()
  ffi.cdef("ssize_t readlink(const char *, char *, size_t);")
  local buf = ffi.new("char[4096]")
  local n = ffi.C.readlink("/proc/self/exe", buf, 4096)
  return n > 0 and ffi.string(buf, n) or arg[-1]
end

local function luajit_arguments(luajit, opt, rest, path)
  local args = { luajit }
  for _, letter in ipairs { "j", "O", "l" } do
    for _, value in ipairs(opt[letter] or {}) do args[#args + 1] = "-" .. letter .. value end
  end
  local dashes = rest[1]:find("^%-.")
  args[#args + 1] = "-e"
  args[#args + 1] = START:format(opt.mode or "C", ("%.6f"):format(opt.interval or INTERVAL_MS),
    opt.clock or "cpu", path, PROGRAM, FAILED, dashes and 3 or 2)
  if dashes then args[#args + 1] = "--" end
  for _, a in ipairs(rest) do args[#args + 1] = a end
  return args
end

-- Returns what child.run() does.
local function run_script(opt, rest, path)
  local luajit = luajit_path()
  child.setenv("LUA_INIT", os.getenv(KEPT_INIT) or os.getenv("LUA_INIT"))
  child.setenv(KEPT_INIT, nil)
  return child.run(luajit, luajit_arguments(luajit, opt, rest, path))
end

-- -- The profile -----------------------------------------------------------

-- Returns the path of a new file, or nil and a message.
local function temporary()
  ffi.cdef("int mkstemp(char *); int close(int);")
  local path = (os.getenv("TMPDIR") or "/tmp") .. "/luajit-sysprof-XXXXXX"
  local buf = ffi.new("char[?]", #path + 1, path)
  local fd = ffi.C.mkstemp(buf)
  if fd < 0 then
    return nil, ("cannot write %s: %s"):format(path, ffi.string(ffi.C.strerror(ffi.errno())))
  end
  ffi.C.close(fd)
  return ffi.string(buf)
end

local function render(shown_view, format, path)
  local file, err = io.open(path, "wb")
  if not file then return nil, "cannot write " .. err end
  local failed
  require("sysprof." .. format).render(shown_view, function(s)
    if not failed then
      local ok, why = file:write(s)
      if not ok then failed = why or "unknown error" end
    end
  end)
  local ok, why = file:close()
  if not ok then failed = failed or why or "unknown error" end
  if failed then return nil, ("cannot write %s: %s"):format(path, failed) end
  return true
end

local function summary(profile, shown_view, path)
  local samples, us = profile:totals()
  say(("%.0f samples, %.3f s of CPU time, written to %s"):format(samples, us / 1e6, path))
  local lost, lost_text = selfreport.lost(profile)
  if lost > 0 then say("warning: samples lost: ", lost_text) end
  if not profile.complete then say("warning: ", profile:problem_text()) end
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

-- Reads the profile at a path and writes what was asked for. Returns true, or
-- nil and a message.
local function finish(path, format, opt)
  local profile, err = reader.read(path, { timeline = NEEDS_TIMELINE[format],
					   progress = progress.new() })
  if not profile then return nil, "no profile was made: " .. err end
  opt.title, opt.limit = opt.title or opt.script, 60
  local shown_view = view.new(profile, opt)
  if format ~= "bin" then
    local ok
    ok, err = render(shown_view, format, opt.output)
    if not ok then return nil, err end
  end
  summary(profile, view.new(profile, opt), opt.output)
  return true
end

-- -- Main ------------------------------------------------------------------

-- Returns the format that the ending of a file name stands for, or nil.
local function format_of(path)
  local found, len
  for _, ending in ipairs(ENDINGS) do
    local tail = ending[1]
    if ending[2] and path:sub(-#tail) == tail and #tail > (len or 0) then
      found, len = ending[2], #tail
    end
  end
  return found
end

-- An output that cannot be written is found before the script has run.
local function check_output(path)
  local file, err = io.open(path, "ab")
  if not file then return nil, "cannot write " .. err end
  file:close()
  return true
end

local function run(opt, rest)
  local format = opt.format
  local ok, err = check_output(opt.output)
  local path = opt.output
  if ok and format ~= "bin" then path, err = temporary() end
  if not ok or not path then
    say(err)
    return FAILED
  end
  local status, signo, why = run_script(opt, rest, path)
  if why then
    say("cannot run luajit: ", why)
    return FAILED
  end
  ok, err = finish(path, format, opt)
  if not ok then say(err) end
  if format ~= "bin" then
    if ok then os.remove(path) else say("the profile is kept in ", path) end
  end
  if signo then child.die(signo) end
  return status == 0 and not ok and FAILED or status
end

local function usage_error(message)
  say(message, ("; see '%s --help'"):format(PROGRAM))
  return USAGE
end

local function main(args)
  local command = args[1] == "run" and table.remove(args, 1)
  local opt, rest = options.parse(SPECS, args, true)
  if not opt then return usage_error(rest) end
  if opt.help then
    io.stdout:write(HELP_HEAD, options.help(SPECS), HELP_TAIL)
    return OK
  elseif opt.version then
    io.stdout:write(("%s (sysprof for LuaJIT), stream version %d\n")
		    :format(PROGRAM, G.SPF_VERSION))
    return OK
  elseif not command then
    return usage_error(("expected the command 'run', got %s")
		       :format(args[1] and "'" .. args[1] .. "'" or "nothing"))
  elseif #rest == 0 then
    return usage_error("expected a SCRIPT")
  elseif opt.no_host and opt.no_lua then
    return usage_error("--no-host and --no-lua leave nothing")
  end
  opt.output = opt.output or DEFAULT_OUTPUT
  opt.format = opt.format or format_of(opt.output)
  if not opt.format then
    return usage_error(("the ending of '%s' stands for no format"):format(opt.output))
  end
  opt.script = rest[1]
  return run(opt, rest)
end

local arguments = {}
for i = 1, #arg do arguments[i] = arg[i] end
local ok, status = xpcall(function() return main(arguments) end, function(err)
  return tostring(err):gsub("[\r\n]+", " ")
end)
if not ok then
  say(status:find("interrupted!$") and "interrupted" or "internal error: " .. status)
  status = FAILED
end
os.exit(status)
