----------------------------------------------------------------------------
-- Verb 'run': profiles a script from its beginning to its end.
--
-- The script runs in the luajit program, in a process of its own: it behaves and ends
-- as without a profile (sysprof.cli.launch). That process writes the profile; the
-- command renders it.
----------------------------------------------------------------------------

local child = require("sysprof.cli.child")
local command = require("sysprof.cli.command")
local endings = require("sysprof.cli.endings")
local files = require("sysprof.base.files")
local launch = require("sysprof.cli.launch")
local merge_files = require("sysprof.read.mergefiles")
local outfile = require("sysprof.cli.outfile")
local progress = require("sysprof.cli.progress")
local reader = require("sysprof.read.reader")
local runspecs = require("sysprof.cli.runspecs")
local summary = require("sysprof.cli.summary")
local view = require("sysprof.show.view")

local SPECS = runspecs.SPECS
local ELF, HEAD = "\127ELF", 4

-- -- The command line ------------------------------------------------------

-- Events that others bring along.
local BRINGS = { alloc = { "live" }, wall = { "cpu", "offcpu" } }

-- Events that have a weight.
local HAVE = {
  bytes = { alloc = true, live = true }, objects = { alloc = true, live = true },
  waits = { offcpu = true, wall = true, ["coroutine-wait"] = true },
}

-- Returns the names of a list of events, without their modifiers.
local function names_of(recorded)
  local names = {}
  for name in recorded:gmatch("[^,]+") do
    name = name:match("^%s*([^:/%s]*)")
    names[#names + 1] = name
    for _, other in ipairs(BRINGS[name] or {}) do names[#names + 1] = other end
  end
  return names
end

-- Says if the event to show does not have the weight, or nil.
local function wrong_weight(shown, weight)
  local have, is_other = HAVE[weight], false
  for _, its in pairs(HAVE) do is_other = is_other or its[shown] or false end
  if have and not have[shown] or weight == "cpu" and is_other then
    return ("--weight=%s: the event '%s' has no such weight"):format(weight, shown)
  end
end

-- Says if the event to show is not one that is recorded, or nil.
local function wrong_event(recorded, shown)
  local names = names_of(recorded)
  for _, name in ipairs(names) do
    if name == shown then return nil end
  end
  return ("--event=%s is not recorded; expected one of %s"):format(shown, table.concat(names, ", "))
end

-- Says why a file cannot be the script, or nil.
local function wrong_script(rest)
  local script = rest[1]
  if script == "-" then return nil end
  local st = files.stat(script)
  if not st and script:find("luajit[^/]*$") and rest[2] then
    return ("there is no script '%s'; expected the script itself: 'luajit-sysprof run %s'"):format(script, rest[2])
  elseif st and st.kind == "folder" then
    return ("cannot run %s: it is a folder; expected a Lua script"):format(script)
  elseif st and st.kind ~= "file" then	-- A pipe is read once.
    return nil
  end
  local file, err = io.open(script, "rb")
  if not file then return "cannot open " .. err end
  local head = file:read(HEAD)
  file:close()
  if head == ELF then
    return ("%s is a program; expected a Lua script. A program on this LuaJIT is profiled by " ..
	    "'LUAJIT_SYSPROF=on %s'"):format(script, script)
  end
end

-- Says what is wrong with a command line, or nil.
local function contradiction(opt, rest)
  if #rest == 0 then return "expected a SCRIPT" end
  if opt.no_host and opt.no_lua then return "--no-host and --no-lua leave nothing" end
  if opt.interval and opt.hz then return "--interval and --hz both set the rate; remove one" end
  if opt.output ~= "-" and files.is_same(opt.output, rest[1]) then
    return "script and output are the same file"
  end
  local wrong = opt.clock and opt.event and wrong_event(opt.clock, opt.event)
  if wrong then return wrong end
  local shown = opt.clock and opt.event or names_of(opt.clock or opt.event or "cpu")[1]
  return opt.weight and wrong_weight(shown, opt.weight)
end

-- Puts defaults and what options mean together into place. Returns nil, or what is wrong.
local function prepare(opt, rest)
  local err
  opt.output = opt.output or runspecs.OUTPUT:gsub("%.bin$", endings.of(opt.format or "bin"))
  if not opt.format then opt.format, err = endings.format(opt.output, opt.output == "-" and "top" or "bin") end
  err = err or contradiction(opt, rest)
  if err then return err end
  if opt.format == "bin" and opt.output == "-" then
    return "standard output is the script's; expected a file for the profile"
  end
  -- Without --clock, --event names what is recorded.
  if not opt.clock then opt.clock, opt.event = opt.event, nil end
end

-- Returns the options of misc.sysprof.start for a profile at a path.
local function start_options(opt, path)
  local start = { path = path }
  for _, spec in ipairs(SPECS) do
    if spec.start then start[spec.key] = opt[spec.key] end
  end
  start.mode, start.flush = opt.mode or "C", opt.flush or "thread"
  start.threads = opt.all_threads and "all" or nil
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

-- -- The profile -----------------------------------------------------------

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

-- Reads the profiles of the script and its children, and writes the requested output.
-- Returns a view of the profile; or nil, a message, and whether the profile has nothing to keep.
local function render(paths, opt)
  local renderer = opt.format ~= "bin" and require("sysprof.formats." .. opt.format) or {}
  local st = files.stat(paths[1])
  if opt.delay and (not st or st.size == 0) then
    return nil, ("no profile: the script ended before the delay of %g s"):format(opt.delay), true
  elseif st and st.size == 0 and not paths[2] then
    return nil, "no profile: the script ended before the profile began", true
  end
  local profile, err = reader.read_all(paths, { timeline = renderer.needs_timeline,
						activity = renderer.needs_activity,
						progress = progress.new() })
  if not profile then return nil, "the profile is missing: " .. err end
  if not profile.complete and profile:totals() == 0 and summary.is_full(paths[1]) then
    return nil, "no samples: the disk of the profile is full", true
  end
  opt.limit, opt.brief = runspecs.LIMIT, opt.format == "top"
  if opt.brief and not opt.lines and not opt.no_lua then opt.by = "lua" end
  local shown_view, ok
  shown_view, err = view.new(profile, opt)
  if not shown_view then return nil, err end
  opt.title = shown_view:default_title(opt.script)
  if not opt.in_place then
    ok, err = outfile.write(opt.output, function(write)
      if opt.format == "bin" then return merge_files(paths, write, {}) end
      renderer.render(shown_view, write)
    end, true)
    if not ok then return nil, err end
  end
  return shown_view
end

-- Copies a profile that could not be rendered to a file with a name.
local function keep(this, path, opt)
  if not path:find("^/proc/") then
    this.say("the profile is kept in ", path)
    return
  end
  local st, err = files.stat(opt.output), nil
  local is_device = opt.output == "-" or st and st.kind ~= "file"
  local to = is_device and runspecs.OUTPUT or opt.output .. ".bin"
  local ok = not files.stat(to)
  local function copy(write)
    local file = io.open(path, "rb")
    for block in function() return file and file:read(2^16) end do write(block) end
    if file then file:close() end
  end
  if ok then ok = outfile.write(to, copy) end
  if not ok then
    to, err = launch.temporary()
    if to then ok, err = outfile.write(to, copy) end
  end
  this.say(ok and "the profile is kept in " .. to or "the profile is lost: " .. err)
end

-- The old profile comes back if the new one tells nothing.
local function restore(this, aside, path)
  if aside and os.rename(aside, path) then this.say(path, " is still the profile of an earlier run") end
end

-- Removes files that had to have a name.
local function remove(paths)
  for _, name in ipairs(paths) do
    if not name:find("^/proc/") then os.remove(name) end
  end
end

-- Shows what a script has recorded. aside: the old profile, or nil. has_failed: the script ended with an error. Returns
-- whether that worked.
local function show(this, paths, opt, aside, has_failed)
  child.ignore_pipe()	-- Who reads the output may leave; nothing of ours may stay then.
  local shown_view, err, is_empty = render(paths, opt)
  local is_closed = err and err:find("Broken pipe", 1, true)
  if not opt.in_place and (shown_view or is_closed) then
    remove(paths)
    if opt.fork then remove(launch.profiles_of_children(paths[1])) end	-- Of those that run on, too.
  end
  if is_closed then child.die_of_pipe() end
  if shown_view then
    if aside and has_failed and shown_view.profile:totals() == 0 then
      this.say("the script ended with an error before the first sample")
      restore(this, aside, opt.output)
    else
      summary.print(this.say, shown_view, paths, opt)
    end
    return true
  end
  this.say(err)
  if opt.in_place then
    local st = files.stat(opt.output)
    if is_empty or st and st.size == 0 then os.remove(opt.output) end
    restore(this, aside, opt.output)
  elseif is_empty then
    remove(paths)
  else
    for _, name in ipairs(paths) do keep(this, name, opt) end
  end
  return false
end

local function run(this, opt, rest)
  local path, err, aside = opt.output, nil, nil
  if opt.in_place then
    aside = outfile.set_aside(path)
  else
    path, err = (opt.fork and launch.temporary or launch.unnamed)()
  end
  if not path then
    this.say(err)
    return command.FAILED
  end
  local before = launch.profiles_of_children(path)
  local status, signo, why = launch.run(start_options(opt, path), luajit_options(opt), rest)
  local paths, ok = profiles(opt, path, before), false
  if why then
    this.say(why)
    restore(this, aside, path)
    if not opt.in_place then remove(paths) end
  else
    ok = show(this, paths, opt, aside, status ~= command.OK and not signo)
  end
  if signo then child.die(signo) end
  return status == command.OK and not ok and command.FAILED or status
end

-- -- API -------------------------------------------------------------------

local verb = { name = "run", line = "profile a Lua script", specs = SPECS, is_script = true }

verb.help = {
  usage = "Usage: luajit-sysprof run [options] SCRIPT [ARG...]",
  intro = [[

Profiles the Lua script SCRIPT from beginning to end and writes the profile.
SCRIPT "-" is standard input. A summary goes to standard error.
]],
  tail = [[
Exit status: that of the script; 1 if the script succeeded and its profile could not
be written, or if the profiler could not start; 2 wrong command line.
]],
  example = "luajit-sysprof run -o app.html app.lua",
}

function verb.main(this, opt, rest)
  local wrong = prepare(opt, rest)
  if wrong then return this.usage_error(wrong) end
  opt.script = rest[1]
  local err, _ = wrong_script(rest)
  -- A device or a pipe gets the profile when it is whole. The profiler checks a file of its own itself.
  local st = files.stat(opt.output)
  opt.in_place = opt.format == "bin" and not (st and st.kind == "other")
  if not err and not opt.in_place then _, err = outfile.check(opt.output, opt.format, opt.force) end
  if err then
    this.say(err)
    return command.FAILED
  end
  for _, name in ipairs(names_of(opt.clock or "")) do
    if name == "wall-signal" then
      this.say("warning: wall-signal wakes sleeping threads, so their waits end early; --event=wall does not")
    end
  end
  return run(this, opt, rest)
end

return verb
