----------------------------------------------------------------------------
-- A compiled loop over pairs() whose two results lie in each other's registers.
--
-- LuaJIT calls a function for the next pair. It returns a pointer in rax and an index in
-- rdx. In part(), six values that live on leave the compiler rdx for the pointer and rax for
-- the index, so it exchanges them. A LuaJIT of before April 2022 exchanges only their lower
-- halves, and the program ends by SIGSEGV. Prints "exchanged" if the code has a correct
-- exchange.
----------------------------------------------------------------------------

local EXCHANGE = "\72\146"	-- xchg rax, rdx

local kept = { s1 = "1", s2 = "2", s3 = "3", s4 = "4", s5 = "5", s6 = "6" }
local value = { s = "" }
local list = { a = value }

local function part(kept, list)
  local s1, s2, s3, s4, s5, s6 = kept.s1, kept.s2, kept.s3, kept.s4, kept.s5, kept.s6
  for _, v in pairs(list) do
    local x, y = v.s, v.u	-- luacheck: ignore
    local w = v
    while w do w = w.next end	-- Is compiled first, so the trace of the outer loop ends here.
  end
  return s1, s2, s3, s4, s5, s6
end

value.u = value
for _ = 1, 100 do value.next = { next = value.next } end
part(kept, list)
part(kept, list)
value.next = nil
for _ = 1, 400 do part(kept, list) end

local util, found = require("jit.util"), false
for number = 1, 100 do
  local code = jit.status() and util.traceinfo(number) and util.tracemc(number)
  found = found or code and code:find(EXCHANGE, 1, true)
end
print(found and "exchanged" or "done")
