----------------------------------------------------------------------------
-- Time budget of a part of the benchmark suite: divides it among measurements.
----------------------------------------------------------------------------

local proc = require("proc")

local budget = {}

-- Divides seconds among count measurements. next() returns the seconds of the next
-- measurement: its share of the time left, less the mean overrun of those before.
function budget.new(seconds, count)
  local till = proc.now() + seconds
  local done, given, last, extra = 0, 0, nil, 0
  return {
    next = function()
      local now = proc.now()
      if last then extra = extra + (now - last - given) end
      last, done = now, done + 1
      local share = (till - now) / math.max(1, count - done + 1)
      given = math.max(0, share - (done > 1 and extra / (done - 1) or 0))
      return given
    end,
  }
end

return budget
