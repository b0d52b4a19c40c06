----------------------------------------------------------------------------
-- Benchmark suite: divides the time of a part among its measurements.
----------------------------------------------------------------------------

local proc = require("proc")

local budget = {}

-- For so many measurements in so many seconds. next() returns for how long the
-- next one may measure: its share of what is left, less what the ones before it
-- took beyond their shares, on average.
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
