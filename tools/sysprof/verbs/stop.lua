----------------------------------------------------------------------------
-- Verb 'stop': ends recordings of live programs, also those of other commands.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local programs = require("sysprof.live.programs")
local requests = require("sysprof.live.requests")
local targets = require("sysprof.cli.targets")
local text = require("sysprof.base.text")
local viewspecs = require("sysprof.cli.viewspecs")

local verb = { name = "stop", line = "end recordings of programs",
  specs = targets.specs(viewspecs.of { "help", "version" }) }

verb.help = {
  usage = "Usage: luajit-sysprof stop [options] PID...",
  intro = "\nEnds the recordings that 'luajit-sysprof record' makes of programs.\n",
  tail = "Exit status: 0 success, 1 no recording was ended, 2 wrong command line.\n",
  example = "luajit-sysprof stop 4711",
}

function verb.main(this, opt, rest)
  local wrong = targets.wrong("stop", opt, rest)
  if wrong then return this.usage_error(wrong) end
  local status = command.FAILED
  requests.ask(targets.open(this, opt, rest), "stop", function(program, answer, why)
    if not answer then return this.say(why) end
    local n, name = requests.number(answer, "stopped"), programs.name(program.facts)
    if n == 0 then return this.say(name, ": there was no recording") end
    status = command.OK
    this.say(name, ": ", text.plural(n, "recording"), " ended")
  end)
  return status
end

return verb
