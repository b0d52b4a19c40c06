----------------------------------------------------------------------------
-- Verb 'perf-map': names of compiled code for perf, as it reads them from /tmp/perf-PID.map.
--
-- perf looks for the file in the program's own root folder, under the number that the program has there.
----------------------------------------------------------------------------

local aside = require("sysprof.live.aside")
local command = require("sysprof.cli.command")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local outfile = require("sysprof.formats.outfile")
local processes = require("sysprof.live.processes")
local programs = require("sysprof.live.programs")
local requests = require("sysprof.live.requests")
local targets = require("sysprof.cli.targets")
local text = require("sysprof.base.text")
local viewspecs = require("sysprof.cli.viewspecs")

local DIGITS = 16	-- Of an address.

local verb = { name = "perf-map", line = "name compiled code for perf report",
  specs = targets.specs(viewspecs.of { "help", "version" }) }

verb.help = {
  usage = "Usage: luajit-sysprof perf-map [options] PID...",
  intro = "\nWrites /tmp/perf-PID.map, where perf finds the names of traces. Traces that the program\n" ..
    "compiles later are missing: write it when 'perf record' has ended.\n",
  tail = "Exit status: 0 success, 1 a map is missing, 2 wrong command line.\n",
  example = "luajit-sysprof perf-map 4711 && perf report",
}

-- Returns the lines of a map that perf and a terminal can take, and how many are of traces.
local function lines_of(content)
  local out, n = {}, 0
  for line in content:gmatch("[^\n]+") do
    local addr, size, name = line:match("^(%x+) (%x+) (.+)$")
    if addr and #addr <= DIGITS and #size <= DIGITS then
      out[#out + 1] = ("%s %s %s\n"):format(addr, size, text.short(name, limits.NAME))
      n = n + (name:find("^trace ") and 1 or 0)
    end
  end
  return table.concat(out), n
end

-- Writes the map of a program from what it has sent. Returns true, or nil; and a message. The program chooses the
-- folder, whose file system may never answer; and in a PID namespace of its own, the number in the name.
local function write_map(program)
  local content, err = files.text(program.path, limits.MAP_BYTES)
  if not content then return nil, ("%s: no map: %s"):format(programs.name(program.facts), err) end
  local facts, lines, n = program.facts, lines_of(content)
  local name = ("perf-%d.map"):format(facts.own_pid)
  local problem, _, why = aside.call(function()
    return select(2, outfile.write_below(facts.folder .. "/root", "tmp", name, facts.user, facts.own_pid == facts.pid,
					 function(write) write(lines) end,
					 function() return processes.is_same(facts) end))
  end)
  if why then return nil, ("cannot write %s/root/tmp/%s: %s"):format(facts.folder, name, why) end
  if problem ~= "" then return nil, problem end
  return true, ("%s written to /tmp/%s"):format(text.plural(n, "trace"), name)
end

function verb.main(this, opt, rest)
  local wrong = targets.wrong("perf-map", opt, rest)
  if wrong then return this.usage_error(wrong) end
  local status = command.OK
  local opened = targets.open(this, opt, rest)
  local function fail(message)
    status = command.FAILED
    this.say(message)
  end
  if #opened == 0 then status = command.FAILED end
  requests.ask_for_files(opened, "perf-map", nil, function(program, answer, why)
    local name = programs.name(program.facts)
    if not answer then return fail(why) end
    if answer.errors[1] then return fail(("%s: %s"):format(name, answer.errors[1])) end
    local missing = requests.number(answer, "vms") - requests.number(answer, "answered")
    if missing > 0 then
      return fail(("%s: no map: %d VM%s not come to Lua code outside of compiled code; try again"):format(name, missing,
	missing == 1 and " has" or "s have"))
    end
    local ok, message = write_map(program)
    if not ok then return fail(message) end
    this.say(name, ": ", message)
  end)
  for _, program in ipairs(opened) do requests.close(program) end
  return status
end

return verb
