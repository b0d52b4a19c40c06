-- Forty calls deep.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function down(n)
  if n == 1 then
    leaf(2000)			-- @work
    return 1
  end
  local x = down(n - 1)		-- @down
  return x + 1
end

local function body()
  down(40)			-- @call
end

scenario.run({
  body = body,
  -- While an exit rebuilds the frames of a recursion, the number of rebuilt frames is
  -- unknown.
  broken_share = 0.03,
  seen = { "body@call down@down{39} down@work leaf" },
  also = { "body", "body@call down@down{1,39} down", "body@call down" },
})
