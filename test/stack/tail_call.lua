-- A tail call replaces its caller.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function middle(n)
  return leaf(n)
end

local function outer(n)
  local x = middle(n)		-- @kept
  return middle(x % 50)
end

local function body()
  for _ = 1, 20 do
    outer(100)			-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call outer@kept leaf", "body@call leaf" },
  also = { "body", "body@call outer", "body@call outer@kept middle",
	   "body@call middle" },
})
