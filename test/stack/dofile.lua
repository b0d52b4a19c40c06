-- The main chunk of a file, run by dofile.

local scenario = require("scenario")

do
  local file = assert(io.open("done.lua", "w"))
  file:write([[
local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end
local a = leaf(500)
return a + leaf(500)
]])
  file:close()
end

local function body()
  dofile("done.lua")		-- @call
end

scenario.run({
  body = body,
  seen = { "body@call dofile [C] main(done.lua)@6 done.lua:1",
	   "body@call dofile [C] main(done.lua)@7 done.lua:1" },
  also = { "body", "body@call dofile", "body@call dofile [C] main(done.lua)" },
})
