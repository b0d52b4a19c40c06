----------------------------------------------------------------------------
-- A compiled loop over pairs() whose two results lie in each other's registers.
--
-- LuaJIT calls a function for the next pair. It returns a pointer in rax and an index in
-- rdx. Values that live on can leave the compiler rdx for the pointer and rax for the index,
-- so it exchanges them. A LuaJIT of before April 2022 exchanges only their lower halves, and
-- the program ends by SIGSEGV. How many values it takes depends on the flags of the build:
-- five or six, so the program tries up to twelve. Prints "exchanged" if code has a correct
-- exchange.
----------------------------------------------------------------------------

local EXCHANGE = "\72\146"	-- xchg rax, rdx
local VALUES_MAX = 12

-- Returns a function whose loop over pairs() has n values beside it that live on.
local function make_part(n)
  local names, fields = {}, {}
  for i = 1, n do names[i], fields[i] = "s" .. i, "kept.s" .. i end
  names, fields = table.concat(names, ", "), table.concat(fields, ", ")
  return loadstring(([[
    return function(kept, list)
      local %s = %s
      for _, v in pairs(list) do
	local x, y = v.s, v.u
	local w = v
	while w do w = w.next end	-- Is compiled first, so the trace of the outer loop ends here.
      end
      return %s
    end]]):format(names, fields, names))()
end

local util, found = require("jit.util"), false
for n = 1, VALUES_MAX do
  jit.flush()
  local kept = {}
  for i = 1, n do kept["s" .. i] = tostring(i) end
  local value = { s = "" }
  local list = { a = value }
  local part = make_part(n)
  value.u = value
  for _ = 1, 100 do value.next = { next = value.next } end
  part(kept, list)
  part(kept, list)
  value.next = nil
  for _ = 1, 400 do part(kept, list) end
  for number = 1, 100 do
    local code = jit.status() and util.traceinfo(number) and util.tracemc(number)
    found = found or code and code:find(EXCHANGE, 1, true)
  end
end
print(found and "exchanged" or "done")
