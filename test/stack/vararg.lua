-- Functions with variable arguments. They have two frames in the VM and one in the stack.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function inner(...)
  local n = select("#", ...)
  leaf(50 + n)			-- @work
  return ...
end

local function outer(...)
  local a = inner(1, ...)	-- @inner
  return a, leaf(50)		-- @last
end

local function body()
  for _ = 1, 20 do
    outer()			-- @call
    outer(1, nil, 3)		-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call outer@inner inner@work leaf", "body@call outer@last leaf" },
  also = { "body", "body@call outer", "body@call outer@inner inner",
	   "body@call outer@inner inner select" },
})
