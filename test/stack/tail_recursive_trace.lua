-- A function that tail-calls itself is a loop: it has one frame at any depth.

local scenario = require("scenario")

local function loop(n, x)
  if n == 0 then
    return x
  end
  x = x * 3 % 1013
  x = x * 5 % 1019
  return loop(n - 1, x)
end

local function body()
  for i = 1, 4 do
    loop(200, i)		-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call loop" },
  also = { "body" },
})
