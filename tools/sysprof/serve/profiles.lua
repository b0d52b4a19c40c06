----------------------------------------------------------------------------
-- Profiles that the server answers with: recorded for a request, or read from files.
--
-- Each function runs in a job's process, and returns what a job returns.
----------------------------------------------------------------------------

local coroutines = require("sysprof.serve.coroutines")
local events = require("sysprof.model.events")
local files = require("sysprof.base.files")
local programs = require("sysprof.live.programs")
local reader = require("sysprof.read.reader")
local recording = require("sysprof.live.recording")
local requests = require("sysprof.live.requests")
local text = require("sysprof.base.text")
local view = require("sysprof.show.view")

local TOP_LIMIT = 50	-- Rows of a table.

local profiles = {}

-- By format: its type, and the ending of a file of it.
profiles.TYPES = {
  pprof = { "application/octet-stream", ".pb.gz" },
  flamegraph = { "text/html; charset=utf-8" },
  top = { "text/plain; charset=utf-8" },
}

-- Returns a function that keeps sentences, and a function that returns them as one.
local function sentences()
  local list = {}
  return function(...) list[#list + 1] = table.concat({ ... }) end,
	 function(default) return #list > 0 and table.concat(list, "; ") or default end
end

-- Renders profiles. wanted: see endpoints; event: of its view, or nil; title: of the page; said: what programs said, or
-- nil.
local function render(write, paths, wanted, event, title, said)
  local format = require("sysprof.formats." .. wanted.format)
  local profile, err = reader.read_all(paths, { timeline = format.needs_timeline, activity = format.needs_activity })
  if not profile then return 503, "the profile is missing: " .. err end
  local shown, wrong = view.new(profile, { event = event, limit = TOP_LIMIT })
  if not shown then return 404, wrong end
  if events.never_began(shown.event) then
    return 503, said or ("the event '%s' was not recorded"):format(shown.event.name)
  end
  shown.options.title = shown:default_title(title)
  format.render(shown, write)
  local its = profiles.TYPES[wanted.format]
  return 200, its[1], its[2] and wanted.name .. its[2]
end

-- Opens programs by open(say). Returns a list that is not empty, or nil and a sentence.
local function open_all(open)
  local say, said = sentences()
  local list = open(say)
  if #list > 0 then return list end
  return nil, said("no program is left")
end

-- Records programs. seconds: how long. wanted: clocks, gc, format, name, event. note(...) takes sentences.
function profiles.record(write, open, wanted, seconds, note)
  local opened, wrong = open_all(open)
  if not opened then return 503, wrong end
  local values = { clocks = wanted.clocks, gc = wanted.gc and 1 or nil, duration_ns = ("%.0f"):format(seconds * 1e9) }
  local say, said = sentences()
  local list, paths, its = recording.begin(opened, values, say), {}, {}
  recording.follow(list, seconds, say)
  for _, program in ipairs(opened) do requests.close(program) end
  for _, program in ipairs(list) do
    local st = files.stat(program.path)
    if st and st.size > 0 and reader.is_profile(program.path) then
      paths[#paths + 1], its[#its + 1] = program.path, program
    else
      say(programs.name(program.facts), " recorded nothing")
    end
  end
  if #paths == 0 then return 503, said("nothing was recorded") end
  local sentence = said()
  if sentence then note(sentence) end
  return render(write, paths, wanted, wanted.event, programs.title(its), sentence)
end

-- Shows files.
function profiles.read(write, paths, wanted)
  return render(write, paths, wanted, wanted.event or wanted.shown,
		paths[1] .. (#paths > 1 and (" and %d more"):format(#paths - 1) or ""))
end

-- Tells the command line that a file holds.
function profiles.command_line(write, path)
  local profile, err = reader.read(path)
  if not profile then return 503, err end
  local command = profile.meta.command
  if not command then return 404, path .. " does not hold the command line of the program" end
  write(text.clean(command))
  return 200, profiles.TYPES.top[1]
end

-- Asks programs where all coroutines are. is_text: answers with texts, not with a profile.
function profiles.coroutines(write, open, is_text, note)
  local opened, wrong = open_all(open)
  if not opened then return 503, wrong end
  local say, said = sentences()
  local asked, texts = {}, {}
  for _, program in ipairs(opened) do
    local ok, why = requests.send_file(program, "dump", { format = is_text and "text" or "folded" })
    if ok then asked[#asked + 1] = program else say(why) end
  end
  requests.collect(asked, function(program, answer, why)
    local name = programs.name(program.facts)
    if not answer then return say(why) end
    for _, problem in ipairs(answer.errors) do say(name, ": ", problem) end
    local vms, answered = requests.number(answer, "vms"), requests.number(answer, "answered")
    if answered < vms then
      say(name, (": %d of %d VMs did not come to Lua code outside of compiled code in time")
		:format(vms - answered, vms))
    end
    if answered > 0 then texts[#texts + 1] = files.text(program.path) end
  end)
  if #texts == 0 then return 503, said("no VM has answered") end
  local sentence = said()
  if sentence then note(sentence) end
  if is_text then
    write(table.concat(texts))
    return 200, profiles.TYPES.top[1]
  end
  coroutines.render(table.concat(texts), write)
  return 200, profiles.TYPES.pprof[1], "coroutine" .. profiles.TYPES.pprof[2]
end

return profiles
