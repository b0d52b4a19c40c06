-- C functions called through the FFI. In compiled code the FFI has no frame.

local scenario = require("scenario")
local C = scenario.ffi()

local function caller(n)
  return (C.c_burn_outer(n))	-- @outer
end

local function body()
  for _ = 1, 20 do
    C.c_burn(300)		-- @inner
    caller(300)			-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@inner cdata.__call? c:c_burn",
	   "body@call caller@outer cdata.__call? c:c_burn_outer c:c_burn" },
  also = { "body", "body@inner cdata.__call", "body@inner ffi.C.__index",
	   "body@call caller", "body@call caller@outer ffi.C.__index",
	   "body@call caller@outer cdata.__call",
	   "body@call caller@outer cdata.__call? c:c_burn_outer" },
})
