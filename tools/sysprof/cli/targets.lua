----------------------------------------------------------------------------
-- Programs that a verb is for: by number, by name, with their children.
----------------------------------------------------------------------------

local processes = require("sysprof.live.processes")
local programs = require("sysprof.live.programs")
local regular = require("sysprof.base.regular")
local system = require("sysprof.base.system")
local text = require("sysprof.base.text")

local PID_FILE_BYTES = 32
local NAMES = 3	-- That a message proposes.
local LISTS = "'luajit-sysprof ps' lists live programs"

local targets = {}

local SPECS = {
  { name = "name", key = "names", arg = "NAME", list = true,
    brief = "all live programs, or scripts, of this name", help = {
    "all live programs of this name, or with a script of",
    "this name" } },
  { name = "children", key = "children", brief = "also the live children of PID", help = {
    "also the live processes that descend from PID" } },
}

-- Returns the specifications of a verb for programs: these, and lists of others behind them.
function targets.specs(...)
  local list = {}
  for _, part in ipairs { SPECS, ... } do
    for _, spec in ipairs(part) do list[#list + 1] = spec end
  end
  return list
end

-- Returns the command that runs the first script among arguments with those behind it, or nil.
local function run_text(rest)
  for i, word in ipairs(rest) do
    if word:find("%.lua$") then
      local args = {}
      for k = i, #rest do args[#args + 1] = text.quoted(rest[k]) end
      return "luajit-sysprof run " .. table.concat(args, " ")
    end
  end
end

-- Returns the processes of some names, except this command; and the first name that no process has, or nil.
local function named(names)
  local list, missing, found = {}, nil, {}
  for _, facts in ipairs(#names > 0 and processes.look_all(processes.list()) or {}) do
    local is_meant, is_wrong = false, facts.has_ended or facts.pid == processes.own_pid()
    for _, name in ipairs(not is_wrong and names or {}) do
      if processes.is_named(facts, name) then is_meant, found[name] = true, true end
    end
    if is_meant then list[#list + 1] = facts.pid end
  end
  for _, name in ipairs(names) do
    if not found[name] then missing = missing or name end
  end
  return list, missing
end

-- Returns names of processes that contain a word, at most NAMES, scripts first.
local function names_with(word)
  local list, seen = {}, {}
  for _, facts in ipairs(processes.look_all(processes.list())) do
    local name = facts.name
    local is_meant = name:find(word, 1, true) and not facts.has_ended and facts.pid ~= processes.own_pid()
    if is_meant and not seen[name] and processes.is_named(facts, name) then
      table.insert(list, facts.script and 1 or #list + 1, name)
      seen[name] = true
    end
  end
  for i = NAMES + 1, #list do list[i] = nil end
  return list
end

-- Says that no process has a name.
local function missing_text(name)
  local near = names_with(name)
  return ("no process has the name '%s'; %s"):format(name, #near == 0 and LISTS or
    "expected a whole name, such as " .. table.concat(near, ", "))
end

-- Says what an argument is that is no PID: a name of processes, or a part of a command to run.
local function other_text(verb, word, rest)
  if word:find("^%d+$") then return LISTS end
  local list = named { word }
  local run = verb == "record" and (#rest > 1 or #list == 0) and run_text(rest)
  if run then return ("did you mean '%s'?"):format(run) end
  return #list > 0 and ("did you mean 'luajit-sysprof %s --name=%s'?"):format(verb, word) or missing_text(word)
end

-- Says that an argument is a file that holds a PID; returns nil if it is none.
function targets.pid_file_text(verb, word)
  local pid = (regular.text(word, PID_FILE_BYTES) or ""):match("^%s*(%d+)%s*$")
  return pid and ("expected a PID, got '%s', which holds %s; did you mean 'luajit-sysprof %s %s'?")
		 :format(word, pid, verb, pid)
end

-- Says what is wrong with arguments, or nil.
function targets.wrong(verb, opt, rest)
  for _, word in ipairs(rest) do
    local is_pid = word:find("^%d+$") and #word < 10 and tonumber(word) > 0
    if word:find("^%d+,[%d,]*$") then
      return ("expected a PID, got '%s'; did you mean '%s'?"):format(word, (word:gsub(",+", " "):gsub(" $", "")))
    elseif not is_pid and word:find("%.bin$") then
      return ("expected a PID, got '%s'; did you mean 'luajit-sysprof report %s'?"):format(word, word)
    elseif not is_pid then
      return targets.pid_file_text(verb, word) or
	     ("expected a PID, got '%s'; %s"):format(word, other_text(verb, word, rest))
    end
  end
  if #rest == 0 and not opt.names then
    return "expected a PID or --name=NAME; " .. LISTS
  elseif opt.children and #rest == 0 then
    return "--children needs a PID"
  end
end

-- Waits for the next VMs of programs that have none. The first n matter only where no program is open.
local function await(list, n)
  local waiting, has_open = {}, false
  for _, program in ipairs(list) do has_open = has_open or program.fd ~= nil end
  for i, program in ipairs(list) do
    if program.sleeps and (i > n or not has_open) then waiting[#waiting + 1] = program end
  end
  programs.await(waiting)
end

-- Opens a list of processes. Returns the list of opened ones, and of sentences on the others. Sentences on the first n
-- count only where nothing else is to be said. may_wait: for programs between two VMs.
local function open(pids, n, may_wait)
  local opened, problems, hidden = {}, {}, {}
  local all = programs.open_all(pids)
  if may_wait then await(all, n) end
  for i, program in ipairs(all) do
    local list = program.fd and opened or i > n and problems or hidden
    list[#list + 1] = program.fd and program or program.sentence
  end
  local is_alone = #opened == 0 and #pids == n
  return opened, is_alone and hidden or problems
end

-- Opens the programs that options mean now, and that are in no list yet. Says nothing. Returns their list.
function targets.open_more(opt, rest, list)
  local seen, pids, given = {}, named(opt.names or {}), {}
  for _, program in ipairs(list) do seen[program.pid] = true end
  for i, word in ipairs(rest) do given[i] = tonumber(word) end
  for _, pid in ipairs(opt.children and processes.with_descendants(given) or {}) do pids[#pids + 1] = pid end
  local wanted = {}
  for _, pid in ipairs(pids) do
    if not seen[pid] then wanted[#wanted + 1], seen[pid] = pid, true end
  end
  return (open(wanted, 0, false))
end

-- Opens the programs that options and arguments mean. Says what is wrong with the others. Returns a list, which may be
-- empty.
function targets.open(this, opt, rest)
  local given, seen = {}, {}
  system.allow_files()	-- Each program takes some descriptors.
  for _, word in ipairs(rest) do
    local pid = tonumber(word)
    if not seen[pid] then given[#given + 1] = pid end
    seen[pid] = true
  end
  local some, missing = named(opt.names or {})
  if opt.children then
    for _, pid in ipairs(processes.with_descendants(given)) do some[#some + 1] = pid end
    given = {}
  end
  local list = {}
  for _, pid in ipairs(some) do
    if not seen[pid] or opt.children then list[#list + 1] = pid end
  end
  -- Of those that no number names, only live ones are meant.
  local n = #list
  for _, pid in ipairs(given) do list[#list + 1] = pid end
  local opened, problems = open(list, n, true)
  if missing then problems[#problems + 1] = missing_text(missing) end
  for _, problem in ipairs(problems) do this.say(problem) end
  return opened
end

return targets
