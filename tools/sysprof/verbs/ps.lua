----------------------------------------------------------------------------
-- Verb 'ps': live programs that this user can record.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local programs = require("sysprof.live.programs")
local requests = require("sysprof.live.requests")
local text = require("sysprof.base.text")
local users = require("sysprof.base.users")
local viewspecs = require("sysprof.cli.viewspecs")

local NAME_BYTES = 60	-- Bytes of a program's name.
local REMEDY = "'LUAJIT_SYSPROF=live PROGRAM' starts a live one"

local verb = { name = "ps", line = "list programs that can be recorded", specs = viewspecs.of { "help", "version" } }

verb.help = {
  usage = "Usage: luajit-sysprof ps",
  intro = "\nLists live programs: those that 'luajit-sysprof record' can record while they run.\n",
  tail = "Exit status: 0 if there is a live program, else 1; 2 wrong command line.\n",
  example = "luajit-sysprof ps",
}

-- Returns what a program does, as a word.
local function state_of(answer)
  if requests.number(answer, "recording") > 0 then return "recording" end
  return requests.number(answer, "profiled") > 0 and "profiled" or "-"
end

local function rows_of(live)
  local rows, askable = {}, {}
  for i, program in ipairs(live) do
    rows[program] = { tostring(program.pid), users.name(program.facts.user), "-", "stopped",
		      text.short(program.facts.program, NAME_BYTES) }
    rows[i] = rows[program]
    if program.fd then askable[#askable + 1] = program end
  end
  local problems = {}
  requests.ask(askable, "info", function(program, answer, why)
    local row = rows[program]
    row[3], row[4] = answer and answer.values.vms and tostring(requests.number(answer, "vms")) or "-",
		     answer and state_of(answer) or "no answer"
    if why then problems[#problems + 1] = why end
  end)
  return rows, problems
end

-- Returns a table as text. The columns of numbers are the first and the third.
local function table_text(rows)
  local is_one_user, widths, out = true, {}, {}
  for _, row in ipairs(rows) do is_one_user = is_one_user and row[2] == rows[1][2] end
  table.insert(rows, 1, { "PID", "USER", "VMS", "STATE", "PROGRAM" })
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local pad = (" "):rep(widths[i] - #cell)
      if i ~= 2 or not is_one_user then cells[#cells + 1] = (i == 1 or i == 3) and pad .. cell or cell .. pad end
    end
    out[#out + 1] = text.without_end(table.concat(cells, "  ")) .. "\n"
  end
  return table.concat(out)
end

-- Returns a line on programs that are not live.
local function asleep_text(asleep)
  local names, more = {}, #asleep - 5
  for i = 1, math.min(#asleep, 5) do
    names[i] = ("%d (%s)"):format(asleep[i].pid, text.short(asleep[i].program, NAME_BYTES))
  end
  return ("%d with sysprof %s not live: %s%s; %s"):format(#asleep, #asleep == 1 and "is" or "are",
    table.concat(names, ", "), more > 0 and (" and %d more"):format(more) or "", REMEDY)
end

function verb.main(this, _, rest)
  if #rest > 0 then
    local pid = rest[1]:match("^%d+$")
    return this.usage_error(("expected no argument, got '%s'%s"):format(rest[1],
      pid and ("; did you mean 'luajit-sysprof record %s'?"):format(pid) or ""))
  end
  local live, others = programs.find()
  local rows, problems = rows_of(live)
  local asleep, lost = programs.asleep(others)	-- Takes long, and a program does not wait for a request.
  local status = command.FAILED
  if #live > 0 then status = this.print(table_text(rows)) end
  for _, problem in ipairs(problems) do this.say(problem) end
  for _, sentence in ipairs(lost) do this.say(sentence) end
  if #asleep > 0 then
    this.say(asleep_text(asleep))
  elseif #live == 0 and #lost == 0 then
    this.say("no program with sysprof runs that this user can record; ", REMEDY)
  end
  return status
end

return verb
