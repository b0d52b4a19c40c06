-- A chunk and a function in a string.

local scenario = require("scenario")

local SOURCE = [[
local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end
leaf(100)
local function outer()
  local x = leaf(100)
  return x
end
outer()
]]
local chunk = assert(loadstring(SOURCE, "=text"))

local function body()
  for _ = 1, 10 do
    chunk()			-- @run
  end
  loadstring(SOURCE, "=text")	-- @load
end

scenario.run({
  body = body,
  seen = { "body@run main(text)@6 text:1", "body@run main(text)@11 text:7@8 text:1" },
  also = { "body", "body@run main(text)", "body@run main(text)@11 text:7",
	   "body@load loadstring", "body@load loadstring [C]" },
})
