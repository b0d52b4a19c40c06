----------------------------------------------------------------------------
-- Verb 'run': profiles a script from its beginning to its end.
--
-- The script runs in the luajit program, in a process of its own: it behaves and ends
-- as without a profile (sysprof.verbs.launch). That process writes the profile; the
-- command renders it.
----------------------------------------------------------------------------

local child = require("sysprof.base.child")
local command = require("sysprof.cli.command")
local comparedruns = require("sysprof.show.comparedruns")
local files = require("sysprof.base.files")
local launch = require("sysprof.verbs.launch")
local optiontable = require("sysprof.base.optiontable")
local outfile = require("sysprof.formats.outfile")
local pairedruns = require("sysprof.verbs.pairedruns")
local reader = require("sysprof.read.reader")
local recorded = require("sysprof.verbs.recorded")
local regular = require("sysprof.base.regular")
local runspecs = require("sysprof.cli.runspecs")
local temporary = require("sysprof.base.temporary")
local text = require("sysprof.base.text")
local verdict = require("sysprof.formats.verdict")
local wanted = require("sysprof.cli.wanted")

local HZ = 1000		-- Of each: short runs, too, need some samples of each function.
local MEANS = 25	-- Rows of their table.

local SPECS = { { name = "repeat", short = "n", key = "runs", arg = "N", convert = pairedruns.count, help = {
  ("run N times, 2 to %d, and print the mean times of"):format(pairedruns.MOST),
  "functions with 95 % intervals; no profile stays" } }, unpack(runspecs.SPECS) }
-- Options that go with it.
local WITH_RUNS = { runs = true, hz = true, jitter = true, threads = true, j = true, O = true, l = true }
local ELF, HEAD = "\127ELF", 4
local SHOWN = 5	-- Foreign files.

-- -- The command line ------------------------------------------------------

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
  local file, err = regular.stream(script)
  if not file then return ("cannot open %s: %s%s"):format(script, err, command.process_hint(script)) end
  local head = file:read(HEAD)
  file:close()
  if reader.is_profile(script) then
    return ("%s is a profile; expected a Lua script. 'luajit-sysprof report %s' shows it"):format(script, script)
  end
  if head == ELF then
    return ("%s is a program; expected a Lua script. 'luajit-sysprof doctor %s' tells how to profile it"):format(
      script, text.quoted(script:find("/", 1, true) and script or "./" .. script))
  end
end

-- Options that a script seldom has. Behind it, they are the script's.
local OURS = { ["-F"] = true }
for _, spec in ipairs(SPECS) do
  if spec.start and spec.arg then OURS["--" .. spec.name] = true end
end

-- Says that the script gets an option which is probably meant for us.
local function say_passed(this, rest)
  for i = 2, #rest do
    local word = rest[i]:match("^%-%-[%w-]+") or rest[i]:match("^%-F")
    if word and OURS[word] then
      this.say(("the script gets %s; options of 'run' stand before the script"):format(word))
      return
    end
  end
end

-- Says what is wrong with a command line, or nil.
local function prepare(opt, rest)
  if #rest == 0 then return "expected a SCRIPT" end
  local wrong = wanted.prepare(opt)
  if wrong then return wrong end
  if opt.output ~= "-" and files.is_same(opt.output, rest[1]) then
    return "script and output are the same file"
  elseif opt.format == "bin" and opt.output == "-" then
    return "standard output is the script's; expected a file for the profile"
  end
end

-- Returns the options of misc.sysprof.start for a profile at a path.
local function start_options(opt, path)
  local start = optiontable.given(opt, "RUN", "LUA")
  start.path, start.clock = path, opt.clock
  for _, row in ipairs(optiontable.of("RUN")) do
    if row.kind == "CHOICE" and not start[row.name] then start[row.name] = optiontable.default(row, "RUN") end
  end
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

-- Returns the paths of the profiles of a script and of its children, and a set of those that a child still writes, with
-- its id. before: files of children from before the run.
local function profiles(this, opt, path, before)
  local list, old, running = { path }, {}, {}
  if not opt.fork then return list, running end
  for _, name in ipairs(before) do old[name] = true end
  local found, foreign = launch.profiles_of_children(path)
  for _, name in ipairs(found) do
    if not old[name] then
      local st, is_profile = files.stat(name), reader.is_profile(name)
      local is_new = st and st.size == 0	-- A child that has just begun has written nothing yet.
      if is_profile then list[#list + 1] = name
      elseif not is_new then foreign[#foreign + 1] = name end
      if is_profile or is_new then running[name] = launch.running_child(path, name) end
    end
  end
  if #foreign > 0 then
    this.say(text.listed(foreign, 1, SHOWN), #foreign == 1 and " is no profile of this user; it is left out" or
	     " are no profiles of this user; they are left out")
  end
  return list, running
end

-- Runs the script several times, and prints means. Returns the status.
local function run_all(this, opt, rest)
  for _, spec in ipairs(SPECS) do
    if opt[spec.key] and not WITH_RUNS[spec.key] then
      return this.usage_error(("--repeat goes with --hz, --threads, -j, -O and -l only, not with %s"):format(
	spec.name and "--" .. spec.name or "-" .. spec.short))
    end
  end
  opt.clock, opt.hz, opt.jitter = "cpu", opt.hz or HZ, true
  local runs, found, ok, status
  local unread = pairedruns.input_text()
  if unread then this.say(unread) end
  child.hold()
  local all, err = pairedruns.new(rest, nil, { pairs = opt.runs, wrong_script = wrong_script,
    luajit = luajit_options(opt), start = function(path) return start_options(opt, path) end })
  if all then
    ok, err = pcall(function()
      local failed = all:run()
      runs = not failed and not child.signal_that_came() and all.runs
      if not runs then return failed end
      found, failed = comparedruns.of_one(runs, child.signal_that_came)
      return failed
    end)
    all:finish()
    local signo = child.signal_that_came()
    if signo then child.die(signo) end
  end
  child.release()
  if all and not ok then error(err, 0) end
  if found then
    ok, err = outfile.write(nil, function(write) verdict.write_means(found, MEANS, write) end)
    status = ok and command.OK or command.FAILED
    if ok then err = nil end
  end
  if err then this.say(err) end
  return status or command.USAGE
end

local function run(this, opt, rest)
  local path, err, aside = opt.output, nil, nil
  if opt.in_place then
    aside = outfile.set_aside(path, opt.follow)
  else
    path, err = (opt.fork and temporary.named or temporary.new)()
  end
  if not path then
    this.say(err)
    return command.FAILED
  end
  local before, spent = launch.profiles_of_children(path), child.cpu_seconds()
  local status, signo, why = launch.run(start_options(opt, path), luajit_options(opt), rest)
  local paths, running = profiles(this, opt, path, before)
  local shown = command.FAILED
  opt.running, opt.spent = running, child.cpu_seconds() - spent
  if why then
    this.say(why)
    recorded.restore(this, aside, opt)
    if not opt.in_place then recorded.remove(paths) end
  else
    shown = recorded.show(this, paths, opt, aside, status ~= command.OK and not signo)
  end
  if signo then child.die(signo) end
  return status == command.OK and shown or status
end

-- -- API -------------------------------------------------------------------

local verb = { name = "run", line = "profile a Lua script", specs = SPECS, is_script = true,
  wrong_script = wrong_script, start_options = start_options, luajit_options = luajit_options }

verb.help = {
  usage = "Usage: luajit-sysprof run [options] SCRIPT [ARG...]",
  intro = [[

Profiles the Lua script SCRIPT from beginning to end and writes the profile.
SCRIPT "-" is standard input. A summary goes to standard error.
]],
  tail = [[
Exit status: that of the script; 1 if the script succeeded and its profile could not
be written, or if the profiler could not start; 2 wrong command line; 3 if the output
lacks stacks.
]],
  example = "luajit-sysprof run -o app.html app.lua",
}

function verb.main(this, opt, rest)
  if opt.runs and #rest > 0 then return run_all(this, opt, rest) end
  local wrong = prepare(opt, rest)
  if wrong then return this.usage_error(wrong) end
  opt.script = rest[1]
  say_passed(this, rest)
  local err, _ = wrong_script(rest)
  -- A device or a pipe gets the profile when it is whole. The profiler checks a file of its own itself.
  local st = files.stat(opt.output)
  opt.in_place = opt.format == "bin" and not (st and st.kind == "other")
  if not err and not opt.in_place then _, err = outfile.check(opt.output, opt.format, opt.force) end
  if not err and opt.in_place and outfile.is_taken(opt.output) then
    err = launch.taken_text(opt.output)
  end
  if err then
    this.say(err)
    return command.FAILED
  end
  local unused = wanted.unused(opt)
  if unused then this.say(unused) end
  for _, name in ipairs(wanted.names(opt.clock or "")) do
    if name == "wall-signal" then
      this.say("warning: wall-signal wakes sleeping threads, so their waits end early; --event=wall does not")
    end
  end
  return run(this, opt, rest)
end

return verb
