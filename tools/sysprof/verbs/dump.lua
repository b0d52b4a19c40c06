----------------------------------------------------------------------------
-- Verb 'dump': stacks of all threads and coroutines of programs that run.
--
-- A recording of a moment shows the threads: it starts from outside, so that a thread in compiled code or asleep in C
-- is there, too. At the same time the VMs write their coroutines, if they come to Lua code outside of compiled code.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local dumped = require("sysprof.formats.dumped")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local numbermap = require("sysprof.base.numbermap")
local outfile = require("sysprof.formats.outfile")
local processes = require("sysprof.live.processes")
local programs = require("sysprof.live.programs")
local reader = require("sysprof.read.reader")
local recording = require("sysprof.live.recording")
local requests = require("sysprof.live.requests")
local runspecs = require("sysprof.cli.runspecs")
local targets = require("sysprof.cli.targets")
local text = require("sysprof.base.text")
local threadstacks = require("sysprof.show.threadstacks")

local SECONDS = 0.2		-- Of the recording.
local HELPER = "sysprof"	-- Name of the profiler's own thread.

-- A scheduler may only have short waits. The names of functions may take as long as the coroutines.
local RECORDING = { clock = "wall/threshold=100000/", interval = 5, duration = SECONDS, threads = "all",
		    finish = 900 - SECONDS * 1e3 }

-- -- The command line ------------------------------------------------------

local SPECS = targets.specs(runspecs.of("DUMP", { "output", "format", "help", "version" }, {
  output = { brief = "write to FILE: .txt .json", help = {
    "write to FILE; its ending gives the format: .txt .json" } },
  format = { choice = { "txt", "json" }, aliases = { text = "txt" }, brief = "txt (default) or json", help = {
    "this format, whatever the ending: txt json" } } }))

-- Puts the format into place. Returns nil, or what is wrong.
local function prepare(opt)
  local name = text.base_name(opt.output or "-")
  local ending = name:match("%.([^.]*)$")
  opt.format = opt.format or (not ending or ending == "txt") and "txt" or ending == "json" and "json" or nil
  if not opt.format then return ("'%s' has no known ending; expected .txt or .json, or --format"):format(name) end
end

-- -- Requests --------------------------------------------------------------

-- Sends a request with a new file. Returns an object like a program; problem tells why it has no answer.
local function request(program, fd, verb, values)
  local its = { pid = program.pid, facts = program.facts, fd = fd }
  local _, why = requests.send_file(its, verb, values)
  its.problem = why
  return its
end

-- Returns why a program has no second connection.
local function why_unconnected(program, why)
  if why == "busy" then return "it has too many clients; try again" end
  if why == "late" then return "its files do not answer" end
  return processes.has_ended(program.pid) and "it has ended" or requests.no_vm(program)
end

-- Asks a program for its coroutines, by a connection of its own.
local function ask_coroutines(program, opt)
  local fd, why = programs.connect(program.facts)
  if fd then return request(program, fd, "dump", { format = opt.format == "json" and "json" or "text" }) end
  return { facts = program.facts, problem = why_unconnected(program, why) }
end

-- Takes an answer, or why there is none. Returns whether another one is to come: a recording has a second one.
local function take(its, answer, why)
  its.problem = its.problem or why or answer.errors[1]
  if answer then
    for _, key in ipairs { "vms", "answered" } do
      its[key] = answer.values[key] and requests.number(answer, key) or its[key]
    end
  end
  return answer ~= nil and answer.kind == "ok" and its.answered == nil and not its.problem
end

-- Waits for all answers.
local function collect(list)
  local asked = {}
  for _, its in ipairs(list) do
    if its.fd and not its.problem then asked[#asked + 1] = its end
  end
  requests.collect(asked, take, SECONDS)
  for _, its in ipairs(list) do requests.close(its) end
end

-- Asks programs for a recording and their coroutines. Returns both, by program. First goes what uses the connections
-- that there are: a program does not wait long for a request.
local function ask(list, opt)
  local all, pairs_of = {}, {}
  for i, program in ipairs(list) do all[i] = request(program, program.fd, "record", RECORDING) end
  for i, program in ipairs(list) do
    local coroutines = ask_coroutines(program, opt)
    pairs_of[program], all[#all + 1] = { all[i], coroutines }, coroutines
  end
  collect(all)
  return pairs_of
end

-- The same. Asks programs once more that have just closed their VMs.
local function ask_all(list, opt)
  local pairs_of, left = ask(list, opt), {}
  for _, program in ipairs(list) do
    program.fd = nil	-- Its request has closed it.
    if pairs_of[program][1].has_left then left[#left + 1] = program end
  end
  for program, pair in pairs(ask(requests.reopen(left), opt)) do pairs_of[program] = pair end
  return pairs_of
end

-- -- Dumps -----------------------------------------------------------------

-- Returns a sentence without the name of the process, which stands above.
local function plain(facts, sentence)
  local name = programs.name(facts)
  if sentence:sub(1, #name) ~= name then return sentence end
  return (sentence:sub(#name + 1):gsub("^: ", ""):gsub("^ ", "the process "))
end

-- Returns the threads of a process: those of its profile, by the numbers that this namespace has for them, and those
-- without samples; the real time; which stacks are left out, or nil; and the seconds on CPU of threads not sampled.
local function threads_of(facts, profile)
  local sampled, real, missing, others = threadstacks.of(profile)
  local by_tid, list = numbermap.new(), {}
  for _, thread in ipairs(sampled) do by_tid[thread.tid] = thread end
  for _, its in ipairs(processes.threads(facts.pid)) do
    local thread = by_tid[its.own_tid]
    by_tid[its.own_tid] = nil
    thread = thread or its.name ~= HELPER and { frames = nil }
    if thread then
      thread.tid, thread.name, thread.blocks, thread.has_ended = its.tid, its.name, its.blocks, its.has_ended
      list[#list + 1] = thread
    end
  end
  for _, thread in ipairs(sampled) do
    if by_tid[thread.tid] then list[#list + 1] = thread end	-- It has ended.
  end
  return list, real, missing, others
end

-- Returns what keeps a VM of a process from Lua code, by its threads.
local function busy_with(threads)
  local found, several
  for _, thread in ipairs(threads or {}) do
    if thread.has_lua then found, several = thread, found ~= nil end
  end
  found = not several and found or not found and threads and threads[1]
  if found and found.has_ended then return ("thread %.0f has ended"):format(found.tid) end
  local state, what = dumped.state(found or {})
  if state == "unknown" then return "it sleeps in C, or stays in compiled code" end
  for _, frame in ipairs(found.frames or {}) do
    if frame.kind == "compiled" then return ("thread %.0f stays in compiled code"):format(found.tid) end
    if frame.kind == "lua" then break end
  end
  if state == "waiting" then return ("thread %.0f waits in %s"):format(found.tid, what) end
  return ("thread %.0f runs C or compiled code"):format(found.tid)
end

-- Returns why VMs have written no coroutines, or nil.
local function silence_of(its, threads)
  if its.problem then return plain(its.facts or { pid = 0, name = "" }, its.problem) end
  local silent = (its.vms or 0) - (its.answered or 0)
  if silent <= 0 then return nil end
  local who = its.vms == 1 and "the VM" or ("%d of %d VMs"):format(silent, its.vms)
  return ("%s was met in no Lua code outside of compiled code: %s"):format(who,
    its.vms == 1 and busy_with(threads) or "they sleep in C, or stay in compiled code")
end

-- Returns a dump (sysprof.formats.dumped). moment: its recording. left: how many bytes its list of coroutines may have.
local function dump_of(program, moment, coroutines, left)
  local facts = program.facts
  local dump = { facts = facts }
  local st = moment.path and files.stat(moment.path)
  local profile, err
  if st and st.size > 0 then
    profile, err = reader.read(moment.path, { timeline = true, live = true, most = limits.WINDOW_BYTES })
    err = err or recording.foreign(profile, facts)
    if err then profile = nil end
  end
  local missing
  if profile then
    dump.threads, dump.real, missing, dump.others = threads_of(facts, profile)
    missing = profile:problem_text() or missing
  end
  local problem = moment.problem or err or not profile and "it recorded nothing" or missing
  dump.trouble = problem and plain(facts, problem) or nil
  local list, why
  if coroutines.path then list, why = files.text(coroutines.path, left) end
  dump.coroutines = list or ""
  dump.silence = why and ("their list: %s"):format(why) or silence_of(coroutines, dump.threads)
  return dump
end

-- -- API -------------------------------------------------------------------

local verb = { name = "dump", line = "show stacks of programs that run", specs = SPECS }

verb.help = {
  usage = "Usage: luajit-sysprof dump [options] PID...",
  intro = [[

Prints what the threads of live programs do now, with their stacks, and where all their
coroutines are. 'luajit-sysprof ps' lists these programs.
]],
  tail = "Exit status: 0 success, 1 nothing could be shown, 2 wrong command line.\n",
  example = "luajit-sysprof dump 4711",
}

function verb.main(this, opt, rest)
  local wrong = targets.wrong("dump", opt, rest) or prepare(opt)
  if wrong then return this.usage_error(wrong) end
  local ok, err = outfile.check(opt.output, "dump", opt.force)
  if not ok then
    this.say(err)
    return command.FAILED
  end
  local opened, list = targets.open(this, opt, rest), {}
  local pairs_of = ask_all(opened, opt)
  local status = command.FAILED
  local left = limits.DUMP_BYTES
  for i, program in ipairs(opened) do
    local pair = pairs_of[program]
    list[i] = dump_of(program, pair[1], pair[2], left)
    left = left - #list[i].coroutines
    if list[i].threads or list[i].coroutines ~= "" then status = command.OK end
  end
  if #list == 0 then return status end
  ok, err = outfile.write(opt.output, function(write) dumped.render(write, opt.format, list) end)
  if ok then return status end
  this.say(err)
  return command.FAILED
end

return verb
