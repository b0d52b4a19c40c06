-- A loop with a builtin that LuaJIT does not compile: it stitches the trace around the
-- builtin.

local scenario = require("scenario")

local function mix(x)
  x = x * 3 % 1013
  x = x * 5 % 1019
  return x * 7 % 1021
end

local LIST = {}
for i = 1, 100 do LIST[i] = i end

local function body()
  local x, remove = 1, table.concat
  for _ = 1, 50 do
    x = mix(x)			-- @before
    x = mix(x)			-- @before
    remove(LIST, ",", 1, 5)	-- @builtin
    x = mix(x)			-- @after
    x = mix(x)			-- @after
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@before mix", "body@after mix", "body@builtin table.concat" },
  also = { "body" },
})
