----------------------------------------------------------------------------
-- Numbers among the facts of a profile: texts that may hold anything.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")

local DIGITS = 17	-- Of the largest number.

-- Returns a fact as a number from 0 on, nil if it is none.
return function(value)
  local n = value and #value <= DIGITS and value:find("^[%d.]+$") and tonumber(value)
  return n and n < limits.NUMBER and n or nil
end
