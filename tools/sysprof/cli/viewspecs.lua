----------------------------------------------------------------------------
-- Options that choose, filter and name what a profile shows.
----------------------------------------------------------------------------

local endings = require("sysprof.formats.endings")
local filters = require("sysprof.show.filters")

local TOP_LIMIT = 60

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

-- Ages are known by powers of two.
local function to_cycles(s)
  local n = #s <= 10 and s:find("^%d+$") and tonumber(s)
  if n and n > 0 and select(1, math.frexp(n)) == 0.5 then return n end
  return nil, "1, 2, 4, 8 or another power of two"
end

-- What the rows of a table may be.
local ROWS = {
  { "lua", "Lua functions, with what they call in C" },
  { "function", "functions of Lua, of C and of the VM" },
  { "line", "lines" },
  { "lualine", "Lua lines, with what they call in C" },
  { "module", "source files, programs and libraries" },
  { "vmstate", "states of the VM" },
  { "thread", "threads" },
  { "type", "types of allocations" },
  { "reason", "reasons of the compiler" },
  { "age", "ages of what is live, in cycles of the collector" },
  { "syscall", "system calls that threads wait in" },
  { "label", "sets of labels; label:KEY: values of one label" },
}
local ROW_NAMES = {}
for i, row in ipairs(ROWS) do ROW_NAMES[i] = row[1] end
local LABEL_ROWS = "^label:."

-- Returns the help of --by with a default.
local function rows_help(default)
  local lines = { ("top: what the rows are (default: %s)"):format(default) }
  for i, row in ipairs(ROWS) do lines[i + 1] = ("%s: %s"):format(row[1], row[2]) end
  return lines
end

-- Returns the help of --limit with a default.
local function limit_help(default)
  return { ("top: show at most N rows (default %d, 0: all)"):format(default) }
end

-- Returns the help of --weight with lines on its default.
local function weight_help(...)
  return { "samples: count samples; event: sum their weights, such",
	   "as CPU time or bytes; cpu, bytes: the same; objects (of",
	   "alloc), waits (of offcpu and coroutine-wait): count them.", ... }
end

local WEIGHT = { name = "weight", key = "weight", arg = "UNIT",
  choice = { "samples", "event", "cpu", "bytes", "objects", "waits" }, others = true, help = weight_help(
  "Default: event for bytes and real time, and for CPU time",
  "if over 5 % of it has no place; else samples") }

local SPECS = {
  { name = "format", key = "format", arg = "FORMAT", choice = endings.FORMATS, aliases = endings.ALIASES,
    brief = "folded, top, tree, flamegraph, svg, pprof, ...", help = {
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
  { name = "output", short = "o", key = "output", arg = "FILE",
    brief = "write to FILE: .html .svg .txt .folded .pb.gz .json", help = {
    "write to FILE; its ending gives the format: .html .svg .txt",
    ".folded .pb.gz .json .tree; \"-\" is standard output" } },
  { name = "force", key = "force", help = {
    "overwrite a FILE that sysprof did not write" } },
  { name = "event", short = "e", key = "event", arg = "NAME",
    brief = "show this event: cpu, offcpu, alloc, ...", help = {
    "samples of this event or clock only (default: the first one)" } },
  { name = "clock", key = "event", arg = "NAME", help = { "the same as --event" } },
  WEIGHT,
  { name = "lines", key = "lines", brief = "name Lua frames by their current lines", help = {
    "name Lua frames by their current lines" } },
  { name = "traces", key = "traces", help = {
    "show compiled code as frames [trace N] and [trace N loop]" } },
  { name = "by", key = "by", arg = "WHAT", choice = ROW_NAMES, pattern = LABEL_ROWS,
    brief = "rows are lua, function, line, module, thread, ...", help = rows_help("function") },
  { name = "blocking", key = "blocking",
    brief = "only waits that block an event loop", help = {
    "only waits that block an event loop or other Lua code,",
    "as a table of lines unless there is a --format" } },
  { name = "loop", key = "loops", arg = "NAME", list = true, help = {
    "--blocking: functions that match the pattern NAME are",
    "event loops; their waits are idle" } },
  { name = "diff", key = "diff", arg = "BASE", help = {
    "folded, top, flamegraph, svg: compare with the profile BASE" } },
  { name = "include", key = "include", arg = "PATTERN", list = true,
    brief = "only stacks with this name in them", help = {
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
    brief = "only this thread, by name or id", help = { "only samples of threads with this id or name" } },
  { name = "label", key = "labels", arg = "LABEL", list = true, convert = to_label,
    help = { "only samples with this label, KEY=VALUE" } },
  { name = "older", key = "older", arg = "CYCLES", convert = to_cycles,
    brief = "only live blocks that outlived N collections", help = {
    "only live blocks that have lived through so many cycles",
    "of the collector: 1, 2, 4, 8... 'report' shows their lines" } },
  { name = "from", key = "from", arg = "SECONDS", convert = to_microseconds,
    brief = "only from this time on; --to: before this time",
    help = { "only samples from this time on, counted from the start" } },
  { name = "to", key = "to", arg = "SECONDS", convert = to_microseconds,
    help = { "only samples before this time" } },
  { name = "no-host", key = "no_host", brief = "leave out C frames", help = { "leave out C frames" } },
  { name = "no-lua", key = "no_lua", help = { "leave out Lua frames" } },
  { name = "coroutine", key = "coroutine", help = {
    "leave out the frames that resumed a coroutine" } },
  { name = "no-coroutine-mark", key = "no_coroutine_mark", help = {
    "leave out the frame [coroutine]" } },
  { name = "symbols", key = "symbols", arg = "DIR", list = true, help = {
    "also look for symbols of C code in files in DIR" } },
  { name = "no-demangle", key = "no_demangle", help = {
    "keep names of C++ and Rust mangled" } },
  { name = "limit", key = "limit", arg = "N", number = true, brief = "at most N rows, 0: all",
    help = limit_help(TOP_LIMIT) },
  { name = "title", key = "title", arg = "TEXT", help = {
    "title of a flame graph, name of a profile" } },
  { name = "help", short = "h", key = "help", brief = "this; --help shows all options",
    help = { "show this help; -h: the common options" } },
  { name = "version", key = "version", help = { "show the versions of sysprof and LuaJIT" } },
}

local viewspecs = { SPECS = SPECS, WEIGHT = WEIGHT, TOP_LIMIT = TOP_LIMIT,
		    rows_help = rows_help, limit_help = limit_help, weight_help = weight_help }

-- Returns the specifications without some, given by a list of keys.
function viewspecs.without(keys)
  local left_out, list = {}, {}
  for _, key in ipairs(keys) do left_out[key] = true end
  for _, spec in ipairs(SPECS) do
    if not left_out[spec.key] then list[#list + 1] = spec end
  end
  return list
end

-- Returns the specifications with some keys.
function viewspecs.of(keys)
  local wanted, list = {}, {}
  for _, key in ipairs(keys) do wanted[key] = true end
  for _, spec in ipairs(SPECS) do
    if wanted[spec.key] then list[#list + 1] = spec end
  end
  return list
end

-- Returns specifications in which some have other fields. others: by key, these fields.
function viewspecs.with(specs, others)
  local list = {}
  for i, spec in ipairs(specs) do
    local its = others[spec.key]
    list[i] = its and setmetatable(its, { __index = spec }) or spec
  end
  return list
end

-- Returns specifications whose output has one format only.
function viewspecs.with_ending(specs, ending)
  local text = "write to FILE" .. ending
  return viewspecs.with(specs, { output = { brief = text, help = { text .. "; \"-\" is standard output" } } })
end

return viewspecs
