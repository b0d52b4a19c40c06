-- Code that LuaJIT compiled before the profiler started.

local scenario = require("scenario")

local function mix(x)
  x = x * 3 % 1013
  x = x * 5 % 1019
  return x * 7 % 1021
end

local function body()
  local x = 1
  for _ = 1, 500 do
    x = mix(x)			-- @one
    x = mix(x + 1)		-- @two
  end
  return x
end

scenario.run({
  body = body,
  modes = { "compiled" },
  before = function()
    for _ = 1, 100 do body() end
  end,
  seen = { "body@one mix", "body@two mix" },
  also = { "body" },
})
