-- The way back from deep recursion: the returns lead to frames that are below
-- those the trace began in.

local scenario = require("scenario")

local function down(n)
  if n == 0 then
    return 1
  end
  local x = down(n - 1)		-- @down
  x = x * 3 % 1013
  x = x * 5 % 1019
  x = x * 7 % 1021
  return x + 1
end

local function body()
  for _ = 1, 4 do
    down(100)			-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call down@down+ down" },
  also = { "body", "body@call down" },
})
