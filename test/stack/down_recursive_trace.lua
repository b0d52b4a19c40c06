-- The way back from deep recursion: the returns lead to frames below those at the trace's
-- beginning. Work halfway down has an exact depth.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function down(n)
  if n == 0 then
    return 1
  end
  local x = down(n - 1)		-- @down
  x = x * 3 % 1013
  x = x * 5 % 1019
  if n == 50 then
    leaf(500)			-- @half
  end
  return x + 1
end

local function body()
  for _ = 1, 4 do
    down(100)			-- @call
  end
end

scenario.run({
  body = body,
  -- While an exit rebuilds the frames of a recursion, the number of rebuilt frames is
  -- unknown.
  broken_share = 0.03,
  seen = { "body@call down@down{1,100} down", "body@call down@down{50} down@half leaf" },
  also = { "body", "body@call down" },
})
