----------------------------------------------------------------------------
-- Benchmark suite: which clocks of sysprof can be had, and the rates that are
-- measured.
----------------------------------------------------------------------------

local clocks = {}

local DEFAULT_MS = 10

-- The first of some clocks that can be had. Returns nil and why the last cannot.
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

-- Returns a list of { id=, title=, ours= }, the last a kind of profilers.lua, and a list
-- of what is missing, as in a report. Above the rate of the kernel's tick, the clock
-- is the one that reaches it at the least cost.
function clocks.rates()
  local rates, missing = {}, {}
  local cpu, why = clocks.first({ "cpu" })
  if not cpu then return rates, { { what = "sysprof", why = why } } end
  rates[1] = { id = "default", title = ("default rate (cpu, %d ms)"):format(DEFAULT_MS),
	       ours = ("ours/%d/cpu"):format(DEFAULT_MS) }
  local fast = clocks.first({ "task-clock", "wall" })
  if fast ~= "task-clock" then
    local _, reason = clocks.first({ "task-clock" })
    missing[1] = { what = "task-clock, so the clock is " .. fast, why = reason }
  end
  rates[2] = { id = "1kHz", title = "1 kHz (" .. fast .. ")", ours = "ours/1/" .. fast }
  rates[3] = { id = "10kHz", title = "10 kHz (" .. fast .. ")", ours = "ours/0.1/" .. fast }
  return rates, missing
end

return clocks
