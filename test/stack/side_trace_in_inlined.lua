-- A side trace that begins within an inlined function.

local scenario = require("scenario")

local function mix(x)
  x = x * 3 % 1013
  x = x * 5 % 1019
  return x * 7 % 1021
end

local function other(x)
  x = x * 11 % 1031
  x = x * 13 % 1033
  return x * 17 % 1039
end

local function choose(i, x)
  if i % 3 == 0 then
    x = other(x)		-- @rare
    x = x + 1			-- @rare
  else
    x = mix(x)			-- @often
    x = x + 2			-- @often
  end
  return x
end

local function body()
  local x = 1
  for i = 1, 500 do
    x = choose(i, x)		-- @call
    x = x + 1
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@call choose@rare other", "body@call choose@often mix" },
  also = { "body", "body@call choose" },
})
