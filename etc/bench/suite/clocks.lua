----------------------------------------------------------------------------
-- Clocks and rates of the benchmark suite: those that are available here.
----------------------------------------------------------------------------

local clocks = {}

local DEFAULT_MS = 10

-- Returns the first available clock of a list; else nil, and why the last one is
-- unavailable.
function clocks.first(names)
  local sysprof = require("misc").sysprof
  local why
  for _, name in ipairs(names) do
    local ok, message = sysprof.start({ mode = "D", clock = name, interval = DEFAULT_MS })
    if ok then
      sysprof.stop()
      return name
    end
    why = message or "the profiler is not in this build"
    if not why:find("^clock") then why = ("clock '%s': %s"):format(name, why) end
  end
  return nil, why
end

-- Returns a list of rates { id=, title=, ours= }, and a list { what=, why= } of the
-- missing ones. ours is a kind of profilers.lua. Above the rate of the kernel's tick, it
-- has the cheapest clock that reaches the rate.
function clocks.rates()
  local rates, missing = {}, {}
  local cpu, why = clocks.first({ "cpu" })
  if not cpu then return rates, { { what = "sysprof", why = why } } end
  rates[1] = { id = "default", title = ("default rate (cpu, %d ms)"):format(DEFAULT_MS),
	       ours = ("ours/%d/cpu"):format(DEFAULT_MS) }
  local fast = clocks.first({ "task-clock", "wall-signal" })
  if fast ~= "task-clock" then
    local _, reason = clocks.first({ "task-clock" })
    missing[1] = { what = "task-clock, so the clock is " .. fast, why = reason }
  end
  rates[2] = { id = "1kHz", title = "1 kHz (" .. fast .. ")", ours = "ours/1/" .. fast }
  rates[3] = { id = "10kHz", title = "10 kHz (" .. fast .. ")", ours = "ours/0.1/" .. fast }
  return rates, missing
end

return clocks
