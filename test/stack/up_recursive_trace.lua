-- A function that calls itself as its last but one step: a trace of it goes up
-- the stack, several calls in each round.

local scenario = require("scenario")

local function up(n)
  if n == 0 then
    return 0
  end
  local x = n * 3 % 1013
  x = x * 5 % 1019
  local y = up(n - 1)		-- @up
  return x + y
end

local function body()
  for _ = 1, 4 do
    up(100)			-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call up@up+ up" },
  also = { "body", "body@call up" },
})
