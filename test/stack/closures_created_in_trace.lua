-- Functions that a loop creates and calls.

local scenario = require("scenario")

local function make(n)
  local function closure(x)
    x = x * 3 % 1013 + n
    x = x * 5 % 1019 + n
    return x * 7 % 1021
  end
  return closure
end

local function body()
  local x = 1
  for i = 1, 200 do
    local closure = make(i)	-- @make
    x = closure(x)		-- @call
    x = closure(x)		-- @again
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@call closure", "body@again closure", "body@make make" },
  also = { "body" },
})
