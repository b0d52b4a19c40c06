-- Builtins: with own frames in the interpreter, inlined in a trace. The bytes read
-- there wait for each other: a processor hides one alone behind the division, where
-- numbers are integers.

local scenario = require("scenario")

local floor, byte, bxor = math.floor, string.byte, bit.bxor
local TEXT = ("\1\2\3\4\5\6\7\8"):rep(8)

local function mix(x, i)
  x = floor(x / 3)		-- @floor
  x = x + byte(TEXT, byte(TEXT, byte(TEXT, byte(TEXT, x % 64 + 1))))	-- @byte
  return (bxor(x, i))		-- @bxor
end

local function body()
  local x = 1
  for i = 1, 500 do
    x = mix(x, i % 64 + 1)	-- @call
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@call mix@floor math.floor?", "body@call mix@byte string.byte?",
	   "body@call mix@bxor bit.bxor?" },
  also = { "body", "body@call mix" },
})
