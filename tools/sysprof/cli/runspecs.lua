----------------------------------------------------------------------------
-- Options of 'run': what is recorded, and how it is shown.
----------------------------------------------------------------------------

local endings = require("sysprof.formats.endings")
local optiontable = require("sysprof.base.optiontable")
local viewspecs = require("sysprof.cli.viewspecs")

local OUTPUT = optiontable.find("path", "LUA").default
local LIMIT = 60	-- Rows of a table.
local FORMATS = { "bin", unpack(endings.FORMATS) }

local SHORT = { hz = "F", interval = "i", duration = "d" }
local ARGUMENTS = { NUMBER = "N", COUNT = "N", TIME = "TIME", SIZE = "SIZE", CHOICE = "NAME", SIGNAL = "SIGNAL" }
local EXAMPLES = { COUNT = true, TIME = true, SIZE = true }
local HELP_COLUMNS = 52

-- Returns lines of a text.
local function wrapped(text)
  local lines = {}
  for word in text:gmatch("%S+") do
    local last = lines[#lines]
    if last and #last + 1 + #word <= HELP_COLUMNS then
      lines[#lines] = last .. " " .. word
    else
      lines[#lines + 1] = word
    end
  end
  return lines
end

-- Returns the specification of an option of the profiler at a door.
local function spec_of(row, door)
  local default, text = optiontable.default(row, door), row.help
  local brief = default ~= "" and ("%s; default %s"):format(text, default) or text
  if EXAMPLES[row.kind] then
    text = ("%s,%s%s"):format(text, row.unit == "milliseconds" and " or a time" or "", optiontable.example(row))
  end
  if default ~= "" then text = ("%s; default %s"):format(text, default) end
  local is_choice, is_flag = row.kind == "CHOICE", row.kind == "FLAG"
  return {
    name = row.name:gsub("_", "-"), short = SHORT[row.name], key = optiontable.key(row), also = row.also,
    arg = ARGUMENTS[row.kind], help = wrapped(text), brief = row.doors.BRIEF and wrapped(brief)[1] or nil,
    choice = is_choice and optiontable.choices(row) or nil, expected = optiontable.expected(row),
    convert = not is_choice and not is_flag and function(s) return optiontable.value(row, s) end or nil,
  }
end

-- Options of commands, in front of those of the profiler, and behind them.
local FIRST = {
  { name = "output", short = "o", key = "output", arg = "FILE",
    brief = "write to FILE: .html .svg .txt .folded .pb.gz .bin", help = {
    "write to FILE, default " .. OUTPUT .. "; its ending gives the format:",
    ".bin .html .svg .txt .folded .pb.gz .json .tree",
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
    "jit: what the compiler gives up, and why; trace-exit:",
    "exits of traces; events, such as page-faults or cycles.",
    "Separate several by commas, or repeat the option" } },
  { name = "clock", key = "clock", arg = "LIST", joined = true, help = {
    "the same as --event; beside it, --event names the one",
    "that is shown" } },
}
local SHOWN = { "weight", "lines", "traces", "no_host", "no_lua" }
local LAST = {
  { short = "j", key = "j", arg = "CMD", list = true, help = {
    "option of luajit, like -O and -l" } },
  { short = "O", key = "O", arg = "OPT", list = true, help = { "option of luajit" } },
  { short = "l", key = "l", arg = "NAME", list = true, help = { "option of luajit" } },
  { name = "help", short = "h", key = "help", brief = "this; --help shows all options",
    help = { "show this help; -h: the common options" } },
  { name = "version", key = "version", help = { "show the versions of sysprof and LuaJIT" } },
}

local runspecs = { OUTPUT = OUTPUT, LIMIT = LIMIT }

-- Returns the specifications of a door: those of the profiler's options, and those of commands with some keys, or all.
-- texts: by key, the fields that differ.
function runspecs.of(door, keys, texts)
  local wanted, list = {}, {}
  for _, key in ipairs(keys or {}) do wanted[key] = true end
  local function add(specs)
    for _, spec in ipairs(specs) do
      if not keys or wanted[spec.key] then list[#list + 1] = spec end
    end
  end
  add(FIRST)
  for _, row in ipairs(optiontable.of(door)) do list[#list + 1] = spec_of(row, door) end
  add(viewspecs.with(viewspecs.of(SHOWN), { weight = { others = false } }))
  add(LAST)
  return viewspecs.with(list, texts or {})
end

runspecs.SPECS = runspecs.of("RUN")

return runspecs
