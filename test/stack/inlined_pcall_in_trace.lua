-- pcall and its function, inlined into a trace.

local scenario = require("scenario")

local function mix(x)
  x = x * 3 % 1013
  x = x * 5 % 1019
  return x * 7 % 1021
end

local function body()
  local x, _ = 1
  for _ = 1, 500 do
    _, x = pcall(mix, x)	-- @one
    _, x = pcall(mix, x)	-- @two
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@one pcall mix", "body@two pcall mix" },
  also = { "body", "body@one pcall", "body@two pcall" },
})
