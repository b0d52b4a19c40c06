-- Loops in loops, of three kinds: traces of inner loops within those of outer loops.

local scenario = require("scenario")

local function mix(x)
  x = x * 3 % 1013
  x = x * 5 % 1019
  return x * 7 % 1021
end

local function body()
  local x, i = 1, 0
  while i < 20 do
    local j = 0
    repeat
      for k = 1, 5 do
	x = mix(x + k)		-- @inner
      end
      j = j + 1
      x = mix(x + j)		-- @middle
    until j == 4
    ::again::
    i = i + 1
    x = mix(x + i)		-- @outer
    if i % 4 == 0 then goto again end
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@inner mix", "body@middle mix", "body@outer mix" },
  also = { "body" },
})
