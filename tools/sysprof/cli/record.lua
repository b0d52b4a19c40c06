----------------------------------------------------------------------------
-- Verb 'record': profiles programs that run.
--
-- Each program writes into a file of its own, whose descriptor it gets. They begin at the same moment, and
-- become one profile. Ctrl-C ends the recordings, and what they have is written.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local files = require("sysprof.base.files")
local interrupts = require("sysprof.cli.interrupts")
local launch = require("sysprof.cli.launch")
local merge_files = require("sysprof.read.mergefiles")
local outfile = require("sysprof.cli.outfile")
local programs = require("sysprof.live.programs")
local reader = require("sysprof.read.reader")
local recorded = require("sysprof.cli.recorded")
local requests = require("sysprof.live.requests")
local runspecs = require("sysprof.cli.runspecs")
local socket = require("sysprof.live.socket")
local targets = require("sysprof.cli.targets")
local wanted = require("sysprof.cli.wanted")

local DONE_SECONDS = 10		-- A program may search names at the end of its profile.
local STEP_SECONDS = 1

-- -- The command line ------------------------------------------------------

local SPECS = runspecs.of({ "output", "format", "event", "clock", "interval", "hz", "duration", "max_size", "period",
			    "all_threads", "gc", "backtracer", "force", "jitter", "mode", "weight", "lines", "traces",
			    "no_host", "no_lua", "help", "version" },
			  { duration = { brief = "record for 10s, 500ms, 2m; default: until Ctrl-C", help = {
			    "record for this time, such as 10s, 500ms or 2m; default:",
			    "until Ctrl-C" } } })

for i, spec in ipairs(targets.SPECS) do table.insert(SPECS, i, spec) end

-- -- Recording -------------------------------------------------------------

local function plural(n, word)
  return ("%d %s%s"):format(n, word, n == 1 and "" or "s")
end

-- Says the sentences of a program.
local function say_all(this, name, list)
  for _, sentence in ipairs(list) do this.say(name, ": ", sentence) end
end

-- Lets each program begin. Returns those that did.
local function begin(this, list, opt)
  local asked, started = {}, {}
  local values = wanted.request(opt)
  for _, program in ipairs(list) do
    local path, fd = launch.unnamed()
    local ok, why = nil, fd
    if path and not fd then
      why = "cannot record without procfs"
      os.remove(path)
    elseif path then
      program.path = path
      ok, why = requests.send(program, "record", values, fd)
    end
    if ok then asked[#asked + 1] = program else this.say(why) end
  end
  requests.collect(asked, function(program, answer, why)
    local name = programs.name(program.facts)
    if not answer or answer.kind ~= "ok" then
      requests.close(program)
      say_all(this, name, answer and answer.notes or {})
      say_all(this, name, answer and answer.errors or {})
      if why or #answer.errors == 0 then this.say(why or name .. " ended the recording at once") end
      return
    end
    started[#started + 1] = program
    say_all(this, name, answer.notes)
    local waiting = requests.number(answer, "waiting")
    if waiting > 0 then
      this.say(name, (": %d of %s begin%s when the program runs Lua code outside of compiled code"):format(waiting,
	plural(requests.number(answer, "vms"), "VM"), waiting == 1 and "s" or ""))
    end
  end)
  return started
end

-- Takes what a recording program has sent. Returns whether its recording is over.
local function take(this, program)
  local answer, why, is_closed = requests.receive(program)
  local name = programs.name(program.facts)
  if answer and answer.kind == "done" then
    say_all(this, name, answer.notes)
    say_all(this, name, answer.errors)
  elseif answer then
    this.say(name, " sent a second answer before the recording ended")
  elseif is_closed then
    this.say(requests.has_ended(program) and name .. " has ended" or why, "; what it recorded until then is kept")
  elseif why then
    this.say(why)
  end
  return answer ~= nil or why ~= nil
end

-- Asks recording programs to end their recordings, each by a connection of its own. Returns a list of these.
local function stop(list)
  local stops = {}
  for _, program in ipairs(list) do
    local fd = programs.connect(program.facts)
    local its = { fd = fd, pid = program.pid, facts = program.facts }
    if fd and requests.send(its, "stop") then stops[#stops + 1] = its end
  end
  return stops
end

-- Waits until all recordings are over: by themselves, by a signal, or because a program does not answer.
local function follow(this, list, duration, signals)
  local running, stops, limit = {}, nil, duration and socket.now() + duration + DONE_SECONDS
  for _, program in ipairs(list) do running[#running + 1] = program end
  while #running > 0 do
    local fds = { signals.fd }
    for i, program in ipairs(running) do fds[i + 1] = program.fd end
    local ready = socket.wait(fds, STEP_SECONDS)
    for i = #running, 1, -1 do
      if ready[running[i].fd] and take(this, running[i]) then table.remove(running, i) end
    end
    if ready[signals.fd] and signals.take() then
      if stops then break end	-- Who interrupts twice does not want to wait.
      stops, limit = stop(running), socket.now() + DONE_SECONDS
    end
    if limit and socket.now() > limit then
      for _, program in ipairs(running) do
	this.say(requests.no_answer(program, DONE_SECONDS), "; what it recorded until then is kept")
      end
      break
    end
  end
  for _, program in ipairs(stops or {}) do requests.close(program) end
end

-- Says what is recorded, and how that ends.
local function announce(this, list, duration)
  local what = #list == 1 and programs.name(list[1].facts) or plural(#list, "process"):gsub("s$", "es")
  this.say("recording ", what, duration and (" for %g s"):format(duration) or "", "; press Ctrl-C to end",
	   duration and " sooner" or "")
end

-- Records programs. Returns those that have written a profile.
local function record(this, opened, opt)
  local signals = interrupts.begin()
  local list, good = begin(this, opened, opt), {}
  if #list > 0 then
    announce(this, list, opt.duration)
    follow(this, list, opt.duration, signals)
  end
  for _, program in ipairs(opened) do requests.close(program) end
  signals.finish()
  for _, program in ipairs(list) do
    local st = files.stat(program.path)
    if st and st.size > 0 and reader.is_profile(program.path) then
      good[#good + 1] = program
    else
      this.say(programs.name(program.facts), st and st.size > 0 and " wrote no profile" or " recorded nothing")
    end
  end
  return good
end

-- -- The profile -----------------------------------------------------------

-- Merges the files of programs. Returns the path of the whole, or nil and a message.
local function merge(this, list)
  local paths, warnings = {}, {}
  for i, program in ipairs(list) do paths[i] = program.path end
  if #paths == 1 then return paths[1] end
  local path, problem = launch.unnamed()
  if not path then return nil, problem end
  local file = assert(io.open(path, "wb"))
  local unwritten
  local failed = merge_files(paths, function(s)
    local ok, why = file:write(s)
    if not ok then unwritten = why end
  end, warnings)
  local ok, why = file:close()
  failed = failed or unwritten or not ok and why
  local function named(message)
    for i, its in ipairs(paths) do
      if message:sub(1, #its + 1) == its .. ":" then return programs.name(list[i].facts) .. message:sub(#its + 1) end
    end
    return message
  end
  for _, warning in ipairs(warnings) do this.say("warning: ", named(warning)) end
  if failed then return nil, "cannot merge the profiles: " .. named(failed) end
  return path
end

-- Returns a title for the output: what was recorded.
local function title_of(list)
  local pids = {}
  for i, program in ipairs(list) do pids[i] = program.pid end
  return ("%s, PID %s"):format(list[1].facts.name, table.concat(pids, ", ", 1, math.min(#pids, 4)) ..
			       (#pids > 4 and " and more" or ""))
end

local function show(this, list, opt)
  local path, err = merge(this, list)
  if not path then
    this.say(err)
    for _, program in ipairs(list) do recorded.keep(this, program.path, opt) end
    return command.FAILED
  end
  opt.script, opt.programs = title_of(list), #list
  return recorded.show(this, { path }, opt) and command.OK or command.FAILED
end

-- -- API -------------------------------------------------------------------

local verb = { name = "record", line = "profile programs that run", specs = SPECS }

verb.help = {
  usage = "Usage: luajit-sysprof record [options] PID...",
  intro = [[

Profiles live programs while they run, and writes one profile. 'luajit-sysprof ps' lists
them. Ctrl-C ends the recording. A summary goes to standard error.
]],
  tail = [[
Exit status: 0 success, 1 no program could be recorded or the profile could not be
written, 2 wrong command line.
]],
  example = "luajit-sysprof record -d 30s -o app.html 4711",
}

function verb.main(this, opt, rest)
  local wrong = targets.wrong("record", opt, rest) or wanted.prepare(opt)
  if wrong then return this.usage_error(wrong) end
  local ok, err = outfile.check(opt.output, opt.format, opt.force)
  if not ok then
    this.say(err)
    return command.FAILED
  end
  local opened = targets.open(this, opt, rest)
  local list = record(this, opened, opt)
  return #list > 0 and show(this, list, opt) or command.FAILED
end

return verb
