----------------------------------------------------------------------------
-- Reader of profiles on the command line: checks options, reads, renders, warns.
--
-- luajit-parse-sysprof and the verbs of luajit-sysprof that read profiles differ in their defaults.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local annotate = require("sysprof.formats.annotate")
local choices = require("sysprof.show.choices")
local command = require("sysprof.cli.command")
local endings = require("sysprof.formats.endings")
local events = require("sysprof.model.events")
local files = require("sysprof.base.files")
local headline = require("sysprof.show.headline")
local hotlines = require("sysprof.formats.hotlines")
local loops = require("sysprof.show.loops")
local outfile = require("sysprof.formats.outfile")
local progress = require("sysprof.terminal.progress")
local reader = require("sysprof.read.reader")
local selfreport = require("sysprof.show.selfreport")
local text = require("sysprof.base.text")
local top_waits = require("sysprof.formats.top_waits")
local units = require("sysprof.model.units")
local view = require("sysprof.show.view")
local viewspecs = require("sysprof.cli.viewspecs")

local MISSING = 20	-- Files that are named in warnings.

local OTHER_WAY = "recorded in another way, so not all differences are the program's: "

-- Formats that can compare two profiles.
local COMPARES = { folded = true, top = true, flamegraph = true, svg = true }

local INTRO = [[
Prints a profile of sysprof. Adds up several profiles. FILE "-" is standard input.
The default format is %s.
]]

local TAIL = [[
Exit status: 0 success, 1 unreadable profile or unwritable output, 2 wrong command
line, 3 profile damaged, cut, or too deep for its size (the whole part is printed).
]]

-- One line about what the output lacks.
local function warn(say, shown, shown_view, format, empty)
  local parts, profile = {}, shown_view.profile
  parts[1] = profile:problem_text()
  local lost, lost_text = selfreport.lost(profile)
  local nothing = empty and shown_view:nothing_text() or selfreport.nothing(profile) or
		  shown_view.event.samples == 0 and "no samples of " .. shown_view.event.name or nil
  nothing = nothing or choices.missing_rows(shown_view)
  if nothing then parts[#parts + 1] = "warning: " .. nothing end
  if lost > 0 and (format == "folded" or format == "annotate" or #parts > 0) then
    parts[#parts + 1] = "warning: samples lost: " .. lost_text
  end
  if format == "folded" or format == "annotate" then
    local unplaced = headline.unplaced(profile)
    parts[#parts + 1] = unplaced and "warning: " .. unplaced
  end
  parts[#parts + 1] = shown_view:room_text()
  if #parts > 0 then say(shown, ": ", table.concat(parts, "; ")) end
end

-- One line about each file that --symbols was to find.
local function warn_symbols(say, shown, shown_view)
  local list = shown_view.symbols:missing()
  for i = 1, math.min(#list, MISSING) do say(shown, ": warning: ", list[i]) end
  if #list > MISSING then
    say(shown, (": warning: and %d more files without symbols"):format(#list - MISSING))
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

-- Would the output overwrite a file that is read?
local function is_output(opt, path)
  return opt.output and opt.output ~= "-" and path and files.is_same(opt.output, path)
end

-- Returns a function that renders a view into write(s), or nil and a message.
local function renderer(shown_view, opt)
  local listing, err
  if opt.hot then
    listing, err = hotlines.new(shown_view, opt.source)
  elseif opt.annotate then
    listing, err = annotate.new(shown_view, opt.annotate)
  end
  if err then return nil, err end
  if listing then
    for _, path in ipairs(listing:sources()) do
      if is_output(opt, path) then return nil, ("the output %s is a source of the profile"):format(opt.output) end
    end
    return function(write) listing:render(write) end
  end
  local format = require("sysprof.formats." .. opt.format)
  return function(write) return format.render(shown_view, write) end
end

local name_of = reader.name

-- Reads files into one profile. Returns a view of it, or nil having said why.
local function read(say, paths, shown, opt)
  local format = opt.format and require("sysprof.formats." .. opt.format) or {}
  local profile, err, bad = reader.read_all(paths, {
    from = opt.from, to = opt.to, timeline = format.needs_timeline or opt.format == "top" and top_waits.shows(opt),
    activity = format.needs_activity,
    spread = (format.needs_spread or opt.annotate or opt.hot) and (opt.brief or not opt.diff or opt.format ~= "top"),
    progress = progress.new() })
  local shown_view
  if profile then shown_view, err = new_view(profile, opt) end
  local is_output_name = bad and bad ~= "-" and not files.stat(bad) and endings.format(bad, nil, true)
  if is_output_name then err = ("%s; -o %s writes it"):format(err, bad) end
  if not shown_view then say(bad and name_of(bad) or shown, ": ", err, bad and command.process_hint(bad) or "") end
  return shown_view
end

-- Returns what to say of the events that two profiles have in common.
local function common_events(a, b)
  local is_in_a, list = {}, {}
  for _, e in ipairs(events.list(a)) do is_in_a[e.name] = true end
  for _, e in ipairs(events.list(b)) do
    if is_in_a[e.name] then list[#list + 1] = text.clean(e.name) end
  end
  if #list == 0 then return "the profiles have no event in common" end
  return "choose an event of both by --event: " .. table.concat(list, ", ")
end

-- Says why the values of a view and of its base do not compare, or nil. All CPU times do, whatever clock measured them.
local function unlike(shown_view, base_view)
  local e, base = shown_view.event, base_view.event
  local unit, base_unit = units.of(e.unit), units.of(base.unit)
  if e.key == base.key or unit.is_cpu and base_unit.is_cpu then return nil end
  return ("event '%s' and event '%s' %s; %s"):format(base.name, e.name,
    unit == base_unit and "are different events" or "have different units",
    common_events(base_view.profile, shown_view.profile))
end

-- Returns how a profile was recorded: texts by what they are of.
local function ways(shown_view)
  local e, meta, others = shown_view.event, shown_view.profile.meta, {}
  for _, other in ipairs(events.list(shown_view.profile)) do others[#others + 1] = text.clean(other.name) end
  local unit = units.of(e.unit)
  return { event = e.name, ["one sample in"] = #e.periods == 1 and not e.of and unit.period(e.periods[1]) or "",
	   mode = text.clean(meta.mode or ""), events = table.concat(others, ",") }
end

-- Says by what two profiles may differ beside the program, or nil.
local function caveat(shown_view, base_view)
  local now, before, parts = ways(shown_view), ways(base_view), {}
  for _, what in ipairs { "event", "one sample in", "mode", "events" } do
    local a, b = before[what], now[what]
    if a ~= "" and b ~= "" and a ~= b then parts[#parts + 1] = ("%s %s and %s"):format(what, a, b) end
  end
  return #parts > 0 and OTHER_WAY .. table.concat(parts, "; ") or nil
end

-- Says that a profile of an earlier run is added to the one that has replaced it, or nil.
local function earlier_text(paths)
  local given = {}
  for _, path in ipairs(paths) do given[path] = true end
  for _, path in ipairs(paths) do
    local later = path:match("^(.+)%.old$")
    if given[later] then return ("%s is added to %s: it is the profile of an earlier run"):format(path, later) end
  end
end

-- Reads, renders and warns. Returns the status.
local function show(say, paths, opt)
  local shown = name_of(paths[1])
  if #paths > 1 then shown = ("%s and %d more"):format(shown, #paths - 1) end
  opt.lines = opt.lines or opt.by == "line" or opt.blocking and opt.format == "top" and not opt.by
  opt.limit = opt.limit or viewspecs.TOP_LIMIT
  local shown_view = read(say, paths, shown, opt)
  local base_view = shown_view and opt.diff and read(say, { opt.diff }, name_of(opt.diff), opt)
  if not shown_view or (opt.diff and not base_view) then return command.FAILED end
  local base = base_view
  local err = base and unlike(shown_view, base)
  if err then
    say(name_of(opt.diff), ": ", err)
    return command.FAILED
  end
  local caution = base and caveat(shown_view, base)
  if caution then say(name_of(opt.diff), ": ", caution) end
  local earlier = earlier_text(paths)
  if earlier then say(earlier) end
  if base then shown_view:compare_with(base) end
  local part = opt.format and opt.format ~= "top" and selfreport.part_text(shown_view.profile)	-- The table tells it.
  opt.title = opt.title or shown_view:default_title(shown) .. (part and ", " .. part or "")
  opt.base_title = opt.diff and name_of(opt.diff)
  local produce, ok
  produce, err = renderer(shown_view, opt)
  if produce then ok, err = outfile.write(opt.output, produce) end
  if not ok then
    say(shown, ": ", err)
    return command.FAILED
  end
  local format = opt.format or "annotate"
  local function is_empty(v)
    local is_told = not base and opt.format == "top" and opt.brief and v:nothing_blocks()
    return v.shown == 0 and not is_told and (v.filter or v.kinds or opt.from or opt.to)
  end
  for _, sentence in ipairs(loops.match_texts(shown_view.matched or {})) do say(shown, ": ", sentence) end
  warn(say, shown, shown_view, format, is_empty(shown_view))
  warn_symbols(say, shown, shown_view)
  if base then
    warn(say, name_of(opt.diff), base_view, format, is_empty(base_view))
    warn_symbols(say, name_of(opt.diff), base_view)
  end
  local function is_whole(v) return v.profile.complete and not v:room_text() end
  return is_whole(shown_view) and (not base or is_whole(base_view)) and
	 command.OK or command.INCOMPLETE
end

local report = {}

-- Says which inputs and outputs do not go together, or nil. base: an input, too, or nil.
function report.wrong_files(paths, opt, base)
  local pipes = base == "-" and 1 or 0
  for _, path in ipairs(paths) do
    if is_output(opt, path) then return "input and output are the same file" end
    if path == "-" then pipes = pipes + 1 end
  end
  if pipes > 1 then return "standard input can be read once, and '-' names it twice" end
end

-- Says which options do not go together, or nil.
local function contradiction(paths, opt)
  local wrong = report.wrong_files(paths, opt, opt.diff)
  if wrong then
    return wrong
  elseif is_output(opt, opt.diff) then
    return "--diff and output are the same file"
  elseif opt.diff and (opt.annotate or not COMPARES[opt.format]) then
    return "--diff needs --format=folded, top, flamegraph or svg"
  elseif is_output(opt, opt.annotate) then
    return "--annotate and output are the same file"
  elseif is_output(opt, opt.source) then
    return "source and output are the same file"
  elseif opt.no_host and opt.no_lua then
    return "--no-host and --no-lua leave nothing"
  elseif opt.no_lua and opt.coroutine then
    return "--coroutine needs the Lua frames that --no-lua leaves out"
  elseif opt.no_lua and (opt.annotate or opt.hot) then
    return (opt.hot and "annotate" or "--annotate") .. " needs the Lua frames that --no-lua leaves out"
  elseif opt.from and opt.to and opt.from >= opt.to then
    return "--from must be less than --to"
  elseif opt.depth == 0 then
    return "--depth=0 leaves nothing"
  elseif opt.by and opt.format ~= "top" then
    return "--by needs --format=top"
  elseif opt.lines and opt.by and opt.by ~= "line" and opt.by ~= "lua" and opt.by ~= "lualine" then
    return "--lines means --by=line; remove it or --by=" .. opt.by
  elseif opt.loops and not opt.blocking then
    return "--loop needs --blocking"
  elseif opt.format and opt.annotate then
    return "--annotate and --format both choose the output; remove one"
  end
end

-- Sets the format of a command line that gives none: by the ending of the output, or the default one; and the
-- default rows of a table. Checks what the options mean together. Returns nil, or what is wrong and the status.
local function prepare(paths, opt, default, by)
  local err, ok
  if not (opt.annotate or opt.hot or opt.format) then
    opt.format, err = endings.format(opt.output or "-", opt.blocking and "top" or default, true)
    if err then return err, command.USAGE end
  end
  if opt.annotate or opt.hot or opt.no_rows then err = endings.wrong_text(opt.output or "-") end
  if err then return err, command.USAGE end
  if opt.format == "top" and not (opt.lines or opt.blocking or opt.no_lua) then opt.by = opt.by or by end
  err = contradiction(paths, opt)
  if err then return err, command.USAGE end
  if opt.by == "lualine" then opt.by, opt.lines = "lua", true end
  ok, err = outfile.check(opt.output, opt.format or "top", opt.force)
  if not ok then return err, command.FAILED end
end

-- Shows profiles as a table of options says (sysprof.cli.viewspecs). default: the format without an ending;
-- by: the rows of a table, by default functions. Returns the exit status.
function report.show(this, opt, paths, default, by)
  local wrong, status = prepare(paths, opt, default, by)
  if status == command.USAGE then return this.usage_error(wrong) end
  if wrong then
    this.say(wrong)
    return status
  end
  return show(this.say, paths, opt)
end

-- Returns the texts of the help of a command with this default format.
function report.help(name, default, example)
  return { usage = ("Usage: %s [options] FILE..."):format(name), intro = INTRO:format(default), tail = TAIL,
	   example = example }
end

return report
