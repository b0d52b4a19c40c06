----------------------------------------------------------------------------
-- Wanted recording: what the options of 'run', 'record' and 'top' mean together.
----------------------------------------------------------------------------

local endings = require("sysprof.formats.endings")
local optiontable = require("sysprof.base.optiontable")
local runspecs = require("sysprof.cli.runspecs")

local wanted = {}

-- Events that others bring along.
local BRINGS = { alloc = { "live" }, wall = { "cpu", "offcpu" },
		 jit = { "trace-abort", "trace-blacklist", "trace-flush", "trace-stop" } }

-- Clocks, which have a rate; and events without rate and period. All others have a period.
local RATED = { cpu = true, ctimer = true, ["task-clock"] = true, itimer = true, wall = true, ["wall-signal"] = true }
local EXACT = { offcpu = true, ["coroutine-wait"] = true, live = true, jit = true,
		["trace-abort"] = true, ["trace-blacklist"] = true, ["trace-flush"] = true, ["trace-stop"] = true }

-- Events that have a weight.
local HAVE = {
  bytes = { alloc = true, live = true }, objects = { alloc = true, live = true },
  waits = { offcpu = true, wall = true, ["coroutine-wait"] = true },
}

-- Returns the names of a list of events, without their modifiers.
function wanted.names(recorded)
  local names = {}
  for name in recorded:gmatch("[^,]+") do
    name = name:match("^%s*([^:/%s]*)")
    names[#names + 1] = name
    for _, other in ipairs(BRINGS[name] or {}) do names[#names + 1] = other end
  end
  return names
end

-- Says if the event to show does not have the weight, or nil.
local function wrong_weight(shown, weight)
  local have, is_other = HAVE[weight], false
  for _, its in pairs(HAVE) do is_other = is_other or its[shown] or false end
  if have and not have[shown] or weight == "cpu" and is_other then
    return ("--weight=%s: the event '%s' has no such weight"):format(weight, shown)
  end
end

-- Says if the event to show is not one that is recorded, or nil.
local function wrong_event(recorded, shown)
  local names = wanted.names(recorded)
  for _, name in ipairs(names) do
    if name == shown then return nil end
  end
  return ("--event=%s is not recorded; expected one of %s"):format(shown, table.concat(names, ", "))
end

-- Says what is wrong with options that the commands share, or nil.
function wanted.contradiction(opt)
  if opt.no_host and opt.no_lua then return "--no-host and --no-lua leave nothing" end
  if opt.interval and opt.hz then return "--interval and --hz both set the rate; remove one" end
  local wrong = opt.clock and opt.event and wrong_event(opt.clock, opt.event)
  if wrong then return wrong end
  local shown = opt.clock and opt.event or wanted.names(opt.clock or opt.event or "cpu")[1]
  return opt.weight and wrong_weight(shown, opt.weight)
end

-- Puts defaults and what options mean together into place. Returns nil, or what is wrong.
function wanted.prepare(opt)
  local err
  opt.output = opt.output or runspecs.OUTPUT:gsub("%.bin$", endings.of(opt.format or "bin"))
  if not opt.format then opt.format, err = endings.format(opt.output, opt.output == "-" and "top" or "bin") end
  err = err or wanted.contradiction(opt)
  if err then return err end
  -- Without --clock, --event names what is recorded.
  if not opt.clock then opt.clock, opt.event = opt.event, nil end
end

-- Says that an option for the rate or the period has no effect on what is recorded, or nil.
function wanted.unused(opt)
  local recorded = opt.clock or "cpu"
  local has_rate, has_period = false, false
  for _, name in ipairs(wanted.names(recorded)) do
    has_rate = has_rate or RATED[name] or false
    has_period = has_period or not (RATED[name] or EXACT[name])
  end
  local rate = opt.hz and "--hz" or opt.interval and "--interval"
  if opt.period and not has_period then
    return ("--period has no effect on %s%s"):format(recorded, has_rate and "; --hz sets its rate" or "")
  elseif rate and not has_rate then
    local instead = has_period and "; --period sets how often it is sampled" or ""
    return ("%s has no effect on %s%s"):format(rate, recorded, instead)
  end
end

-- Returns a caution about the clocks, or nil. A program that is not live yet says it by itself.
function wanted.caution(opt)
  for _, name in ipairs(wanted.names(opt.clock or "cpu")) do
    if name == "itimer" then
      return "exec keeps the clock itimer: if the program calls exec meanwhile, SIGPROF ends the new program"
    end
  end
end

-- Returns the options of the request to a live program, by name. door: of the verb.
function wanted.request(opt, door)
  local values = optiontable.given(opt, door, "LIVE")
  values.clock = opt.clock
  return values
end

return wanted
