-- The main chunk itself works: a chunk without a function around it.

local scenario = require("scenario")

local chunk = assert(loadstring([[
local x = 0
for i = 1, 2000 do
  x = x + i % 7
  x = x - i % 5
end
return x
]], "=chunk"))

local function body()
  chunk()			-- @call
end

scenario.run({
  body = body,
  seen = { "body@call main(chunk)@3", "body@call main(chunk)@4" },
  also = { "body", "body@call main(chunk)" },
})
