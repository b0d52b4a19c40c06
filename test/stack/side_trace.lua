-- A loop with two branches. The rarer one is a side trace.

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

local function body()
  local x = 1
  for i = 1, 500 do
    if i % 3 == 0 then
      x = other(x)		-- @rare
    else
      x = mix(x)		-- @often
    end
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@rare other", "body@often mix" },
  also = { "body" },
})
