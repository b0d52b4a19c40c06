----------------------------------------------------------------------------
-- Numbers of records, each with the range of its type.
--
-- Each function takes a buffer, a position and the end of the record, and returns the number and the position behind
-- it; nil if the number is out of range or does not end in the record.
----------------------------------------------------------------------------

local bytes = require("sysprof.base.bytes")
local limits = require("sysprof.base.limits")

local uleb = bytes.uleb

-- The largest number of a type. Those below 2^53 are exact, others are rounded.
local EXACT, WIDE = limits.NUMBER - 1, limits.WIDE_NUMBER
local LARGEST = { id = EXACT, time = EXACT, age = EXACT, line = EXACT,
		  address = WIDE, counter = WIDE, period = WIDE }

local numbers = {}

for name, largest in pairs(LARGEST) do
  numbers[name] = function(buf, pos, stop)
    local n, behind = uleb(buf, pos)
    if behind > stop or not (n <= largest) then return nil end
    return n, behind
  end
end

return numbers
