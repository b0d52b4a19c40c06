----------------------------------------------------------------------------
-- Command line of the reader: options, messages and exit status.
--
-- luajit-parse-sysprof and the verb report of luajit-sysprof differ in their default format.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local annotate = require("sysprof.formats.annotate")
local command = require("sysprof.cli.command")
local filters = require("sysprof.show.filters")
local input = require("sysprof.read.input")
local options = require("sysprof.cli.options")
local progress = require("sysprof.cli.progress")
local reader = require("sysprof.read.reader")
local selfreport = require("sysprof.show.selfreport")
local top_waits = require("sysprof.formats.top_waits")
local view = require("sysprof.show.view")

local FORMATS = { "folded", "top", "tree", "flamegraph", "svg", "pprof", "speedscope",
		  "gecko", "json" }
local TOP_LIMIT = 60
local MISSING_MAX = 20	-- Files that are named in warnings.

local function to_state(s)
  local state = filters.state(s)
  if state then return state end
  return nil, "a state of the VM, such as INTERP, CFUNC, GC or TRACE"
end

local function to_microseconds(s)
  if s:find("^%d+%.?%d*$") and #s <= 12 then return math.floor(tonumber(s) * 1e6 + 0.5) end
  return nil, "seconds"
end

-- An id or a name; a name may be a number, too.
local function to_thread(s)
  return s:find("^%d+$") and #s <= 10 and tonumber(s) or s
end

local function to_label(s)
  if s:find("^[^=]+=") then return s end
  return nil, "KEY=VALUE"
end

-- Formats that can compare two profiles.
local COMPARES = { folded = true, top = true, flamegraph = true }

local SPECS = {
  { name = "format", key = "format", arg = "FORMAT", choice = FORMATS, help = {
    "folded: one line per stack, root first",
    "top: a table of functions by self and total",
    "tree: callers and callees as indented text",
    "flamegraph: one HTML file for a browser",
    "svg: a flame graph as a picture",
    "pprof: for 'go tool pprof' and other readers of profile.proto",
    "speedscope: for speedscope, samples in order of time",
    "gecko: for the Firefox Profiler, with its timeline",
    "json: everything, one record per sample" } },
  { name = "annotate", key = "annotate", arg = "FILE", help = {
    "instead, print the Lua file FILE with the cost of each line" } },
  { name = "output", short = "o", key = "output", arg = "FILE", help = {
    "write to FILE instead of standard output" } },
  { name = "event", key = "event", arg = "NAME", help = {
    "samples of this event or clock only (default: the first one)" } },
  { name = "weight", key = "weight", arg = "UNIT",
    choice = { "samples", "event", "cpu", "bytes", "objects", "waits" }, others = true, help = {
    "samples: count samples (default); event: sum their weights,",
    "such as CPU time or bytes (default for bytes); cpu, bytes:",
    "the same; or what else the event counts, such as objects" } },
  { name = "lines", key = "lines", help = {
    "name Lua frames by their current lines, not their functions" } },
  { name = "traces", key = "traces", help = {
    "show compiled code as frames [trace N] and [trace N loop]" } },
  { name = "by", key = "by", arg = "WHAT",
    choice = { "function", "line", "module", "vmstate", "thread", "type", "age", "syscall" }, help = {
    "top: rows are functions (default), lines, modules,",
    "states of the VM, threads, types of allocations, ages",
    "of what is live in cycles of the collector, or system",
    "calls that threads wait in" } },
  { name = "blocking", key = "blocking", help = {
    "only waits that block an event loop or other Lua code,",
    "as a table of lines unless there is a --format" } },
  { name = "loop", key = "loops", arg = "NAME", list = true, help = {
    "--blocking: functions that match the pattern NAME are",
    "event loops; their waits are idle" } },
  { name = "diff", key = "diff", arg = "BASE", help = {
    "folded, top, flamegraph: compare with the profile BASE" } },
  { name = "include", key = "include", arg = "PATTERN", list = true, help = {
    "only stacks with a frame whose name contains PATTERN;",
    "* is any text, ^ the beginning and $ the end of the name" } },
  { name = "exclude", key = "exclude", arg = "PATTERN", list = true, help = {
    "no stacks with a frame that matches PATTERN" } },
  { name = "root", key = "root", arg = "PATTERN", help = {
    "only stacks with a frame that matches, from that frame on" } },
  { name = "depth", key = "depth", arg = "N", number = true, help = {
    "only the N outermost frames" } },
  { name = "state", key = "states", arg = "STATE", list = true,
    convert = to_state, help = {
    "only samples in this VM state; --by=vmstate lists them" } },
  { name = "thread", key = "threads", arg = "THREAD", list = true, convert = to_thread,
    help = { "only samples of threads with this id or name" } },
  { name = "label", key = "labels", arg = "LABEL", list = true, convert = to_label,
    help = { "only samples with this label, KEY=VALUE" } },
  { name = "from", key = "from", arg = "SECONDS", convert = to_microseconds,
    help = { "only samples from this time on, counted from the start" } },
  { name = "to", key = "to", arg = "SECONDS", convert = to_microseconds,
    help = { "only samples before this time" } },
  { name = "no-host", key = "no_host", help = { "leave out host frames" } },
  { name = "no-lua", key = "no_lua", help = { "leave out Lua frames" } },
  { name = "coroutine", key = "coroutine", help = {
    "leave out the frames that resumed a coroutine" } },
  { name = "no-coroutine-mark", key = "no_coroutine_mark", help = {
    "leave out the frame [coroutine]" } },
  { name = "symbols", key = "symbols", arg = "DIR", list = true, help = {
    "also look for symbols of C code in files in DIR" } },
  { name = "no-demangle", key = "no_demangle", help = {
    "keep names of C++ and Rust mangled" } },
  { name = "limit", key = "limit", arg = "N", number = true, help = {
    ("top: show at most N rows (default %d, 0: all)"):format(TOP_LIMIT) } },
  { name = "title", key = "title", arg = "TEXT", help = {
    "title of a flame graph, name of a profile" } },
  { name = "help", short = "h", key = "help", help = { "show this help" } },
  { name = "version", key = "version", help = { "show the versions of sysprof and LuaJIT" } },
}

local HELP_HEAD = [[
Usage: %s [options] FILE...

Prints a profile of sysprof. Adds up several profiles. FILE "-" is standard input.
The default format is %s.

]]

local HELP_TAIL = [[

Exit status: 0 success, 1 unreadable profile or unwritable output, 2 wrong command
line, 3 profile damaged, cut, or too deep for its size (the whole part is printed).
]]

-- One line about what the output lacks.
local function warn(say, shown, shown_view, format, empty)
  local parts, profile = {}, shown_view.profile
  parts[1] = profile:problem_text()
  local lost, lost_text = selfreport.lost(profile)
  local nothing = empty and "no sample passes the filters" or selfreport.nothing(profile) or
		  shown_view.event.samples == 0 and "no samples of " .. shown_view.event.name or nil
  if nothing then parts[#parts + 1] = "warning: " .. nothing end
  if lost > 0 and (format == "folded" or format == "annotate" or #parts > 0) then
    parts[#parts + 1] = "warning: samples lost: " .. lost_text
  end
  parts[#parts + 1] = shown_view:room_text()
  if #parts > 0 then say(shown, ": ", table.concat(parts, "; ")) end
end

-- One line about each file that --symbols was to find.
local function warn_symbols(say, shown, shown_view)
  local list = shown_view.symbols:missing()
  for i = 1, math.min(#list, MISSING_MAX) do say(shown, ": warning: ", list[i]) end
  if #list > MISSING_MAX then
    say(shown, (": warning: and %d more files without symbols"):format(#list - MISSING_MAX))
  end
end

-- Returns a view of a profile, or nil and why it cannot be shown as asked.
local function new_view(profile, opt)
  if (opt.from or opt.to) and profile.version < G.SPF_VERSION_OLDEST then
    return nil, "the profile holds no times, --from and --to need them"
  end
  local shown_view, err = view.new(profile, opt)
  if not shown_view then return nil, err end
  local e = shown_view.event
  if shown_view.unit.is_cpu and e.samples > 0 and e.weight == 0 then
    return nil, "the profile holds no CPU times, use --weight=samples"
  end
  return shown_view
end

-- Returns a function that renders a view into write(s), or nil and a message.
local function renderer(shown_view, opt)
  if opt.annotate then
    local listing, err = annotate.new(shown_view, opt.annotate)
    return listing and function(write) listing:render(write) end, err
  end
  local format = require("sysprof.formats." .. opt.format)
  return function(write) format.render(shown_view, write) end
end

-- How messages name an input.
local function name_of(path)
  return path == "-" and "standard input" or path
end

-- Reads files into one profile. Returns a view of it, or nil having said why.
local function read(say, paths, shown, opt)
  local format = opt.annotate and {} or require("sysprof.formats." .. opt.format)
  local profile, err, bad = reader.read_all(paths, {
    from = opt.from, to = opt.to, timeline = format.needs_timeline or opt.format == "top" and top_waits.shows(opt),
    activity = format.needs_activity,
    progress = progress.new() })
  local shown_view
  if profile then shown_view, err = new_view(profile, opt) end
  if not shown_view then say(bad and name_of(bad) or shown, ": ", err) end
  return shown_view
end

local function render(say, paths, opt)
  local shown = name_of(paths[1])
  if #paths > 1 then shown = ("%s and %d more"):format(shown, #paths - 1) end
  opt.lines = opt.lines or opt.by == "line" or opt.blocking and opt.format == "top" and not opt.by
  opt.limit = opt.limit or TOP_LIMIT
  local shown_view = read(say, paths, shown, opt)
  local base_view = shown_view and opt.diff and read(say, { opt.diff }, name_of(opt.diff), opt)
  if not shown_view or (opt.diff and not base_view) then return command.FAILED end
  if base_view and base_view.unit ~= shown_view.unit then
    say(("%s: event '%s' and event '%s' have different units; choose an event of both by --event")
	:format(name_of(opt.diff), base_view.event.name, shown_view.event.name))
    return command.FAILED
  end
  opt.title = opt.title or shown_view:default_title(shown)
  local base = base_view
  if base then shown_view:compare_with(base_view) end
  local produce, err = renderer(shown_view, opt)
  local ok
  if produce then ok, err = command.output(opt.output, produce) end
  if not ok then
    say(shown, ": ", err)
    return command.FAILED
  end
  local format = opt.annotate and "annotate" or opt.format
  local function is_empty(v)
    return v.shown == 0 and (v.filter or v.kinds or opt.from or opt.to)
  end
  warn(say, shown, shown_view, format, is_empty(shown_view))
  warn_symbols(say, shown, shown_view)
  if base then
    warn(say, name_of(opt.diff), base_view, format, is_empty(base_view))
    warn_symbols(say, name_of(opt.diff), base_view)
  end
  local function is_whole(v) return v.profile.complete and v.left_out == 0 end
  return is_whole(shown_view) and (not base or is_whole(base_view)) and
	 command.OK or command.INCOMPLETE
end

-- Would the output overwrite a file that is read?
local function is_output(opt, path)
  return opt.output and path and input.is_same(opt.output, path)
end

-- Says which options do not go together, or nil.
local function contradiction(paths, opt)
  for _, path in ipairs(paths) do
    if is_output(opt, path) then return "input and output are the same file" end
  end
  if is_output(opt, opt.diff) then
    return "--diff and output are the same file"
  elseif opt.diff and (opt.annotate or not COMPARES[opt.format]) then
    return "--diff needs --format=folded, top or flamegraph"
  elseif is_output(opt, opt.annotate) then
    return "--annotate and output are the same file"
  elseif opt.no_host and opt.no_lua then
    return "--no-host and --no-lua leave nothing"
  elseif opt.no_lua and opt.coroutine then
    return "--coroutine needs the Lua frames that --no-lua leaves out"
  elseif opt.no_lua and opt.annotate then
    return "--annotate needs the Lua frames that --no-lua leaves out"
  elseif opt.from and opt.to and opt.from >= opt.to then
    return "--from must be less than --to"
  elseif opt.depth == 0 then
    return "--depth=0 leaves nothing"
  elseif opt.by and opt.format ~= "top" then
    return "--by needs --format=top"
  elseif opt.lines and opt.by and opt.by ~= "line" then
    return "--lines means --by=line; remove it or --by=" .. opt.by
  elseif opt.loops and not opt.blocking then
    return "--loop needs --blocking"
  elseif opt.format and opt.annotate then
    return "--annotate and --format both choose the output; remove one"
  end
end

local report = { SPECS = SPECS }

-- Runs the command line of a command that command.new() has made. program: its name. format: the default
-- one. specs: its options, SPECS without some of its own. Returns the exit status.
function report.main(this, program, format, specs, args)
  local opt, rest = options.parse(specs, args)
  if not opt then return this.usage_error(rest) end
  local status = this.answer(opt, specs, HELP_HEAD:format(program, format), HELP_TAIL)
  if status then
    return status
  elseif #rest == 0 then
    return this.usage_error("expected a FILE")
  end
  if not opt.annotate then opt.format = opt.format or opt.blocking and "top" or format end
  local wrong = contradiction(rest, opt)
  if wrong then return this.usage_error(wrong) end
  return render(this.say, rest, opt)
end

return report
