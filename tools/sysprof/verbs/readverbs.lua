----------------------------------------------------------------------------
-- Verbs that read profiles: report, flame, annotate, diff, merge, export, info.
--
-- Each is the reader (sysprof.verbs.report) with a default format and fewer options. Without a FILE they read
-- what 'run' writes without an output.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local endings = require("sysprof.formats.endings")
local files = require("sysprof.base.files")
local lastrun = require("sysprof.verbs.lastrun")
local launch = require("sysprof.verbs.launch")
local merge_files = require("sysprof.read.mergefiles")
local outfile = require("sysprof.formats.outfile")
local reader = require("sysprof.read.reader")
local report = require("sysprof.verbs.report")
local runspecs = require("sysprof.cli.runspecs")
local selfreport = require("sysprof.show.selfreport")
local text = require("sysprof.base.text")
local users = require("sysprof.base.users")
local viewspecs = require("sysprof.cli.viewspecs")

local PROGRAM = "luajit-sysprof"
local LIMIT = 25	-- Rows of a table that fits a screen, with its head.
local BY = "lua"	-- Rows of a table,
local BY_OF_OLD = "lualine"	-- and of old blocks: a leak is at a line.
local BY_ENVIRONMENT, OF_ENVIRONMENT = "sysprof.[1-9]*.bin", "^sysprof%.%d+%.[%d.]*%d%.bin$"	-- sysprof.PID.VM.bin
local EMPTY_BYTES = 2^20	-- Bytes of a profile without samples.

local DEFAULT = "Without FILE, it reads the last recording from this folder, or %s.\n"

local CODES = [[
Exit status: 0 success, 1 unreadable profile or unwritable output, 2 wrong command
line, 3 profile damaged, cut, or too deep for its size (the whole part is printed).
]]

local verbs = {}

local function add(verb)
  local arguments = verb.arguments or "[options] [FILE...]"
  local default = arguments:find("[FILE", 1, true) and DEFAULT:format(runspecs.OUTPUT) or ""
  verb.help = { usage = ("Usage: %s %s %s"):format(PROGRAM, verb.name, arguments),
		intro = ("\n%s\n%s"):format(verb.intro, default), tail = CODES,
		example = ("%s %s %s"):format(PROGRAM, verb.name, verb.example) }
  verbs[#verbs + 1] = verb
end

-- Adds the profiles of the last recording from this folder, if it is not older than the default file.
local function add_last(this, rest)
  local default, paths = files.stat(runspecs.OUTPUT), lastrun.paths()
  local st = paths[1] and files.stat(paths[1])
  if not st or st.kind ~= "file" or default and default.mtime > st.mtime then return end
  local known = {}
  for _, path in ipairs(paths) do
    local of_path = files.stat(path)
    known[path] = true
    if of_path and of_path.kind == "file" then rest[#rest + 1] = path end
  end
  for _, path in ipairs(launch.profiles_of_children(paths[1])) do	-- Of children that began after the note.
    local of_path = not known[path] and files.stat(path)
    if of_path and of_path.mtime >= st.mtime and reader.is_profile(path) then rest[#rest + 1] = path end
  end
  if #rest == 1 and files.is_same(rest[1], runspecs.OUTPUT) then
    rest[1] = nil
    return
  end
  local date = os.date(", %Y-%m-%d %H:%M:%S", st.mtime) or ""	-- Some times are in no year that it knows.
  this.say("the last recording from this folder", date, ": ", table.concat(rest, " "),
	   "; pages and profiles at a path of LUAJIT_SYSPROF do not count")
end

-- Returns the newest profile here that LUAJIT_SYSPROF has named, if it was changed after a time; or nil.
local function by_environment(after)
  local newest
  for _, path in ipairs(files.matching(BY_ENVIRONMENT)) do
    local st = path:find(OF_ENVIRONMENT) and files.stat(path, true)
    if st and st.kind == "file" and st.uid == users.own() and st.mtime > after and reader.is_profile(path) then
      newest, after = path, st.mtime
    end
  end
  return newest
end

-- Without a file, there is the last recording, or the default file. Returns nil, or what is missing.
local function default_file(this, rest)
  if #rest > 0 then return nil end
  add_last(this, rest)
  local st = files.stat(rest[1] or runspecs.OUTPUT)
  local newer = by_environment(st and st.mtime or 0)
  if newer and st then this.say(newer, " is newer, by LUAJIT_SYSPROF: name it to read it") end
  if #rest > 0 then return nil end
  rest[1] = runspecs.OUTPUT
  if not st then
    return newer and ("expected a FILE, such as %s, which LUAJIT_SYSPROF wrote; there is no %s here"):format(newer,
      runspecs.OUTPUT) or
      ("expected a FILE; there is no %s here, which 'luajit-sysprof run' writes"):format(runspecs.OUTPUT)
  elseif st.kind ~= "file" then	-- A pipe of another user would never end.
    return ("expected a FILE; the %s here is no regular file"):format(runspecs.OUTPUT)
  end
end

-- Returns the path with the ending of another format.
local function renamed(path, ending)
  local stem = path:match("^(.+)%.bin$") or path
  return stem .. ending
end

-- -- Tables, pictures, files of other tools --------------------------------

add {
  name = "report", line = "show a table of the hottest functions",
  specs = viewspecs.with(viewspecs.without {}, {
    by = { help = viewspecs.rows_help(BY) }, limit = { help = viewspecs.limit_help(LIMIT) } }),
  intro = "Prints a table of the Lua functions of profiles. --by=function shows C functions, too.\n" ..
	  "FILE \"-\" is standard input; several profiles are added up.",
  example = "--by=line app.bin",
  main = function(this, opt, rest)
    local missing = default_file(this, rest)
    if missing then return this.usage_error(missing) end
    opt.brief, opt.limit = true, opt.limit or LIMIT
    return report.show(this, opt, rest, "top", opt.older and BY_OF_OLD or BY)
  end,
}

add {
  name = "flame", line = "draw a flame graph", specs = viewspecs.without { "annotate", "by", "limit" },
  intro = "Writes a flame graph: a page for the browser, or a picture with -o FILE.svg. The default\n" ..
	  "output is the name of the profile with the ending .html.",
  example = "-o app.html app.bin",
  main = function(this, opt, rest)
    local missing = default_file(this, rest)
    if missing then return this.usage_error(missing) end
    local told = not opt.output
    if told then opt.output = rest[1] == "-" and "-" or renamed(rest[1], endings.of(opt.format or "flamegraph")) end
    local status = report.show(this, opt, rest, "flamegraph")
    if told and opt.output ~= "-" and (status == command.OK or status == command.INCOMPLETE) then
      this.say("written to ", opt.output)
    end
    return status
  end,
}

add {
  name = "export", line = "write a profile for another program",
  specs = viewspecs.without { "annotate", "by", "limit" },
  intro = "Writes profiles in the format of the output's ending, or of --format.",
  example = "-o app.pb.gz app.bin",
  main = function(this, opt, rest)
    local missing = default_file(this, rest)
    local format, wrong = endings.format(opt.output or "-", nil, true)
    if not missing and not opt.format and not format then
      missing = wrong or "expected --format=FORMAT, or -o FILE with an ending such as .pb.gz"
    end
    if missing then return this.usage_error(missing) end
    return report.show(this, opt, rest)
  end,
}

-- -- Source lines ----------------------------------------------------------

-- Splits paths into profiles and sources. A file that is neither by its head nor by its ending is a source beside a
-- profile.
local function split(paths)
  local profiles, sources = {}, {}
  for _, path in ipairs(paths) do
    local st = path ~= "-" and files.stat(path)
    local is_other = st and st.kind == "file" and not path:find("%.bin$")
    local is_source = path ~= "-" and (path:find("%.lua$") or is_other) and not reader.is_profile(path)
    local list = is_source and sources or profiles
    list[#list + 1] = path
  end
  if #profiles == 0 and #sources == 1 and not sources[1]:find("%.lua$") and not files.stat(runspecs.OUTPUT) then
    return sources, profiles
  end
  return profiles, sources
end

add {
  name = "annotate", line = "show the hot lines of the source",
  arguments = "[options] [FILE...] [SOURCE.lua]",
  specs = viewspecs.with_ending(viewspecs.with(
    viewspecs.without { "annotate", "format", "by", "diff", "title", "traces", "lines" },
    { limit = { help = { "the N lines with most self, and some lines around",
			 "(0: all); default: those with a percent" } } }), ".txt"),
  intro = "Prints the hot lines of all Lua files with some lines around, or the whole file SOURCE.lua.\n" ..
	  "Shares count C code and the VM's work for the line that called it.",
  example = "app.bin app.lua",
  main = function(this, opt, rest)
    local profiles, sources = split(rest)
    if #sources > 1 then
      return this.usage_error(("expected one source file, got '%s' and '%s'"):format(sources[1], sources[2]))
    end
    local missing = default_file(this, profiles)
    if missing then return this.usage_error(missing) end
    opt.hot, opt.source = true, sources[1]
    return report.show(this, opt, profiles)
  end,
}

-- -- Several profiles ------------------------------------------------------

add {
  name = "diff", line = "compare two profiles", arguments = "[options] BASE FILE",
  specs = viewspecs.with(viewspecs.without { "annotate", "diff" }, {
    by = { help = viewspecs.rows_help(BY) }, limit = { help = viewspecs.limit_help(LIMIT) },
    weight = { help = viewspecs.weight_help("Default: event, which has amounts before and after") } }),
  intro = "Compares the profile FILE with BASE: what became faster, and what slower.",
  example = "before.bin after.bin",
  main = function(this, opt, rest)
    if #rest ~= 2 then
      return this.usage_error(("expected two profiles, BASE and FILE, got %d"):format(#rest))
    end
    opt.diff, opt.limit, opt.brief = table.remove(rest, 1), opt.limit or LIMIT, true
    opt.weight, opt.amounts = opt.weight or "event", true	-- Numbers of samples depend on the rate.
    return report.show(this, opt, rest, "top", BY)
  end,
}

-- Returns the end of a sentence on an output that is no profile: which verb adds files up into it.
local function other_text(output, rest)
  local format = endings.format(output, nil, true)
  if not format then return "" end
  local words = {}
  for i, path in ipairs { output, unpack(rest) } do words[i] = text.quoted(path) end
  local verb = (format == "flamegraph" or format == "svg") and "flame" or "export"
  return ("; '%s %s -o %s' adds files up, too"):format(PROGRAM, verb, table.concat(words, " "))
end

add {
  name = "merge", line = "add profiles up into one file", arguments = "-o FILE.bin FILE...",
  specs = viewspecs.with_ending(viewspecs.of { "output", "force", "help", "version" }, ".bin"),
  intro = "Writes one profile with the samples of several. All verbs read it.",
  example = "-o all.bin worker.1.bin worker.2.bin",
  main = function(this, opt, rest)
    if not opt.output then return this.usage_error("expected -o FILE.bin") end
    if #rest == 0 then return this.usage_error("expected a FILE") end
    if opt.output ~= "-" and endings.format(opt.output, "bin") ~= "bin" then
      return this.usage_error(("'%s' is no name of a profile; expected the ending .bin%s")
			      :format(opt.output, other_text(opt.output, rest)))
    end
    local wrong = report.wrong_files(rest, opt)
    if wrong then return this.usage_error(wrong) end
    local ok, err = outfile.check(opt.output, "bin", opt.force)
    if not ok then
      this.say(err)
      return command.FAILED
    end
    local warnings, unreadable = {}, nil
    ok, err = outfile.write(opt.output, function(write)
      unreadable = merge_files(rest, write, warnings)
      return unreadable
    end)
    if not ok then
      this.say(unreadable or err)
      return command.FAILED
    end
    for _, warning in ipairs(warnings) do this.say("warning: ", warning) end
    local st = files.stat(opt.output)
    local merged = st and st.size < EMPTY_BYTES and reader.read(opt.output)
    local nothing = merged and selfreport.nothing(merged)
    if nothing then this.say(opt.output, ": warning: ", nothing) end
    return #warnings > 0 and command.INCOMPLETE or command.OK
  end,
}

add {
  name = "info", line = "show what a profile holds, and what it lacks",
  specs = viewspecs.with_ending(viewspecs.of { "output", "force", "help", "version" }, ".txt"),
  intro = "Prints the self-report of profiles: events, rates, threads, lost and broken samples, costs.",
  example = "app.bin",
  main = function(this, opt, rest)
    local missing = default_file(this, rest)
    if missing then return this.usage_error(missing) end
    opt.no_rows, opt.format = true, "top"
    return report.show(this, opt, rest, "top")
  end,
}

return verbs
