----------------------------------------------------------------------------
-- Room on the Lua stack, so that no function fills it.
--
-- Compiled code that finds the stack full may change a number, in LuaJIT before July 2023 (upstream b7a8c7c1): a loop
-- of 8 rounds made 128. Debian 12 has such a LuaJIT.
----------------------------------------------------------------------------

local stackroom = {}

-- Slots that are in use meanwhile, and slots above them. The collector halves a stack that has less than a quarter
-- in use. unpack() returns less than 8,000 values.
local USED, FREE = 2500, 5000

local function ignore() end

local function call(f, a, b, values, ...)
  ignore(unpack(values, 1, FREE))
  local first, second, third = f(a, b)	-- No tail call: it would give the slots back.
  return first, second, third
end

-- Calls f(a, b), which finds room; returns up to three results.
function stackroom.call(f, a, b)
  local values = {}
  for i = 1, FREE do values[i] = false end
  return call(f, a, b, values, unpack(values, 1, USED))
end

return stackroom
