----------------------------------------------------------------------------
-- Sort of numbers by small whole keys: counts the keys, in linear time.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")

local numbers = array.kind("int32_t")

-- Returns an array of the items of list[0..n-1] by rising key(item), a whole number from 0 to most. Items with the same
-- key stay in their order. Without a list, the items are 0 to n - 1.
return function(list, n, most, key)
  local starts, out = array.zeros(numbers, most + 2), array.resize(numbers, nil, n + 1)
  for i = 0, n - 1 do
    local at = key(list and list[i] or i) + 1
    starts[at] = starts[at] + 1
  end
  for at = 1, most do starts[at] = starts[at] + starts[at - 1] end
  for i = 0, n - 1 do
    local item = list and list[i] or i
    local at = key(item)
    out[starts[at]], starts[at] = item, starts[at] + 1
  end
  array.free(starts)
  return out
end
