-- A recursion that works at the bottom. Its trace goes up the stack, several calls in
-- each round.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function up(n)
  if n == 0 then
    return leaf(1000)		-- @tail
  end
  local x = n * 3 % 1013
  x = x * 5 % 1019
  local y = up(n - 1)		-- @up
  return x + y
end

local function body()
  for _ = 1, 4 do
    up(50)			-- @call
  end
end

scenario.run({
  body = body,
  -- While an exit rebuilds the frames of a recursion, the number of rebuilt frames is
  -- unknown.
  broken_share = 0.03,
  -- The innermost up() calls leaf() in its own place.
  seen = { "body@call up@up{50} leaf", "body@call up@up{1,50} up" },
  also = { "body", "body@call up" },
})
