-- Compiled code that calls C by the FFI, in an inlined function.

local scenario = require("scenario")
local C = scenario.ffi()
local burn = C.c_burn

local function inlined(n)
  burn(n)			-- @one
  burn(n)			-- @two
  return n
end

local function body()
  for _ = 1, 60 do
    inlined(150)		-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call inlined@one cdata.__call? c:c_burn",
	   "body@call inlined@two cdata.__call? c:c_burn" },
  also = { "body", "body@call inlined", "body@call inlined cdata.__call" },
})
