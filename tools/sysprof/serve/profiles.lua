----------------------------------------------------------------------------
-- Profiles that the server answers with: recorded for a request, or read from files.
--
-- Each function runs in a job's process, and returns what a job returns.
----------------------------------------------------------------------------

local coroutines = require("sysprof.serve.coroutines")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local pages = require("sysprof.serve.pages")
local programs = require("sysprof.live.programs")
local reader = require("sysprof.read.reader")
local recording = require("sysprof.live.recording")
local requests = require("sysprof.live.requests")
local text = require("sysprof.base.text")
local view = require("sysprof.show.view")

local TOP_LIMIT = 50	-- Rows of a table.
local PATIENCE_SECONDS = 10	-- That a program may be recorded for somebody else before.

local profiles = {}

-- By format: its type, and the ending of a file of it.
profiles.TYPES = {
  pprof = { "application/octet-stream", ".pb.gz" },
  flamegraph = { "text/html; charset=utf-8" },	-- The start page, too.
  top = { "text/plain; charset=utf-8" },
}

-- Returns a function that keeps sentences, a function that returns them as one, and their list.
local function sentences()
  local list = {}
  return function(...) list[#list + 1] = table.concat({ ... }) end,
	 function(default) return #list > 0 and table.concat(list, "; ") or default end, list
end

-- Renders profiles. wanted: see endpoints; event: of its view, or nil; title: of the page; names: of programs, by path;
-- most: how many bytes a file may have, or nil.
local function render(write, paths, wanted, event, title, names, most)
  local format = require("sysprof.formats." .. wanted.format)
  local profile, err, bad = reader.read_all(paths, { timeline = format.needs_timeline,
						     activity = format.needs_activity, spread = format.needs_spread,
						     live = most ~= nil, most = most })
  if not profile then return 503, ("%s: %s"):format(names[bad] or bad, err) end
  for _, problem in ipairs(profile.problems) do problem.file = names[problem.file] or problem.file end
  local shown, wrong = view.new(profile, { event = event, limit = TOP_LIMIT, fixed_limit = true,
					   weight = wanted.format == "pprof" and "event" or nil })
  if not shown then return 404, wrong end
  shown.options.title = shown:default_title(title)
  local failed = format.render(shown, write)
  if failed then return 503, failed end
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

-- Returns the status for programs that began no recording. A program refuses events that it does not know.
local function status_of_refusal(wanted, opened, refused, said)
  local is_busy = said(""):find(recording.BUSY, 1, true) ~= nil
  return wanted.asks_event and refused == #opened and not is_busy and 400 or 503
end

-- Records programs. seconds: how long. wanted: clocks, asks_event, gc, format, name, event. note(...) takes sentences.
function profiles.record(write, open, wanted, seconds, note)
  local opened, wrong = open_all(open)
  if not opened then return 503, wrong end
  local values = { clock = wanted.clocks, gc = wanted.gc, duration = seconds }
  local say, said = sentences()
  local list, refused = recording.begin(opened, values, say, PATIENCE_SECONDS)
  if #list == 0 then
    return status_of_refusal(wanted, opened, refused, said), said("nothing was recorded")
  end
  local paths, its, names = {}, {}, {}
  recording.follow(list, seconds, limits.WINDOW_BYTES, say)
  for _, program in ipairs(opened) do requests.close(program) end
  for _, program in ipairs(list) do
    local st, who = files.stat(program.path), programs.name(program.facts)
    if st and st.size > 0 and reader.is_profile(program.path) then
      paths[#paths + 1], its[#its + 1], names[program.path] = program.path, program, who
    else
      say(who, " recorded nothing")
    end
  end
  if #paths == 0 then return 503, said("nothing was recorded") end
  local sentence = said()
  if sentence then note(sentence) end
  local status, result, name = render(write, paths, wanted, wanted.event, programs.title(its), names,
				      limits.WINDOW_BYTES)
  if status ~= 200 and sentence then result = ("%s; %s"):format(result, sentence) end
  return status, result, name
end

-- Shows files.
function profiles.read(write, paths, wanted)
  return render(write, paths, wanted, wanted.event or wanted.shown,
		paths[1] .. (#paths > 1 and (" and %d more"):format(#paths - 1) or ""), {})
end

-- Shows which programs a request means now. prefix: of the paths of links.
function profiles.start_page(write, open, prefix)
  local say, _, problems = sentences()
  local list = open(say)
  for _, program in ipairs(list) do requests.close(program) end
  write(pages.start(list, problems, prefix))
  return 200, profiles.TYPES.flamegraph[1]
end

-- Tells the arguments of the first program, with a zero byte between them, as /proc has them.
function profiles.command_line(write, open)
  local opened, wrong = open_all(open)
  if not opened then return 503, wrong end
  local args = {}
  for i, a in ipairs(opened[1].facts.args) do args[i] = text.clean(a) end
  write(table.concat(args, "\0"))
  return 200, profiles.TYPES.top[1]
end

-- Tells the command line that a file holds.
function profiles.command_line_of_file(write, path)
  local profile, err = reader.read(path)
  if not profile then return 503, ("%s: %s"):format(path, err) end
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
  local texts, left = {}, limits.DUMP_BYTES
  requests.ask_for_files(opened, "dump", { format = is_text and "text" or "folded" }, function(program, answer, why)
    local name = programs.name(program.facts)
    if not answer then return say(why) end
    for _, problem in ipairs(answer.errors) do say(name, ": ", problem) end
    local vms, answered = requests.number(answer, "vms"), requests.number(answer, "answered")
    if answered < vms then
      say(name, (": %d of %d VMs did not come to Lua code outside of compiled code in time")
		:format(vms - answered, vms))
    end
    local list, wrong_list
    if answered > 0 then list, wrong_list = files.text(program.path, left) end
    if wrong_list then say(name, ": its list of coroutines: ", wrong_list) end
    texts[#texts + 1], left = list, left - #(list or "")
  end)
  if #texts == 0 then return 503, said("no VM has answered") end
  local sentence = said()
  if sentence then note(sentence) end
  if is_text then
    for _, list in ipairs(texts) do text.write_lines(list, write) end
    if sentence then write(("\nmissing: %s\n"):format(text.clean(sentence))) end
    return 200, profiles.TYPES.top[1]
  end
  local profile, left_out = coroutines.render(table.concat(texts), sentence and text.clean(sentence))
  if left_out then note(left_out) end
  write(profile)
  return 200, profiles.TYPES.pprof[1], "coroutine" .. profiles.TYPES.pprof[2]
end

return profiles
