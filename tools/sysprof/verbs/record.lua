----------------------------------------------------------------------------
-- Verb 'record': profiles programs that run.
--
-- Each program writes into a file of its own, whose descriptor it gets. They begin at the same moment, and
-- become one profile. Ctrl-C ends the recordings, and what they have is written.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local files = require("sysprof.base.files")
local interrupts = require("sysprof.base.interrupts")
local limits = require("sysprof.base.limits")
local merge_files = require("sysprof.read.mergefiles")
local outfile = require("sysprof.formats.outfile")
local programs = require("sysprof.live.programs")
local reader = require("sysprof.read.reader")
local recorded = require("sysprof.verbs.recorded")
local recording = require("sysprof.live.recording")
local requests = require("sysprof.live.requests")
local runspecs = require("sysprof.cli.runspecs")
local targets = require("sysprof.cli.targets")
local temporary = require("sysprof.base.temporary")
local text = require("sysprof.base.text")
local wanted = require("sysprof.cli.wanted")

-- -- The command line ------------------------------------------------------

local EMPTY_BYTES = 2^20	-- Bytes of a profile without samples.
local LISTED = 5	-- Processes in a line.
local PATIENCE_SECONDS = 60	-- That a program may be recorded for somebody else before.

local SPECS = targets.specs(runspecs.of("RECORD", { "output", "format", "event", "clock", "weight", "lines", "traces",
  "no_host", "no_lua", "help", "version" }))

-- -- Recording -------------------------------------------------------------

-- Says what is recorded, and how that ends.
local function announce(this, list, duration)
  local what = #list == 1 and programs.name(list[1].facts) or ("%d processes"):format(#list)
  this.say("recording ", what, duration and (" for %g s"):format(duration) or "", "; press Ctrl-C to end",
	   duration and " sooner" or "")
end

-- Returns how many bytes a program may write.
local function most_bytes(opt)
  return math.min(limits.RECORDING_BYTES, limits.RECORDING_SIZES * (opt.max_size or math.huge))
end

-- Returns the programs of a list that have samples; all, if none has. The time of the others, such as nginx's master,
-- would count as waiting.
local function with_samples(this, list)
  local some, idle = {}, {}
  for _, program in ipairs(list) do
    local st = files.stat(program.path)
    local profile = #list > 1 and st and st.size < EMPTY_BYTES and reader.read(program.path)
    if profile and profile.complete and profile.slots:count() == 0 then
      idle[#idle + 1] = programs.name(program.facts)
    else
      some[#some + 1] = program
    end
  end
  if #some == 0 or #idle == 0 then return list end
  this.say("left out, without samples: ", text.listed(idle, 1, LISTED))
  return some
end

-- Records programs. Returns those that have written a profile, whether one wrote too much, and whether one refused the
-- events.
local function record(this, opened, opt)
  local signals, is_long = interrupts.begin(), false
  local list, good = recording.begin(opened, wanted.request(opt, "RECORD"), this.say, PATIENCE_SECONDS, signals), {}
  if #list > 0 then
    announce(this, list, opt.duration)
    is_long = recording.follow(list, opt.duration, most_bytes(opt), this.say, signals)
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
  return with_samples(this, good), is_long, list.has_refused
end

-- -- The profile -----------------------------------------------------------

-- Merges the files of programs. Returns the path of the whole, and whether a file is damaged or cut; or nil and a
-- message.
local function merge(this, list)
  local paths, warnings = {}, {}
  for i, program in ipairs(list) do paths[i] = program.path end
  if #paths == 1 then return paths[1] end
  local path, problem = temporary.new()
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
  return path, #warnings > 0
end

local function show(this, list, opt)
  local path, lacks = merge(this, list)
  if not path then
    this.say(lacks)
    for _, program in ipairs(list) do recorded.keep(this, program.path, opt) end
    return command.FAILED
  end
  opt.script, opt.programs = programs.title(list), #list
  local status = recorded.show(this, { path }, opt)
  return lacks and status == command.OK and command.INCOMPLETE or status
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
Exit status: 0 success, 1 no program could be recorded, one wrote too much, or the
profile could not be written, 2 wrong command line, 3 the profile is cut, or the
output lacks stacks.
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
  local opened, caution, unused = targets.open(this, opt, rest), wanted.caution(opt), wanted.unused(opt)
  if caution then this.say(caution) end
  if unused then this.say(unused) end
  local list, is_long, is_wrong = record(this, opened, opt)
  local status = #list > 0 and show(this, list, opt) or is_wrong and command.USAGE or command.FAILED
  return is_long and command.FAILED or status
end

return verb
