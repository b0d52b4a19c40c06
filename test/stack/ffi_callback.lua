-- A C function, called through the FFI, calls a Lua function.

local scenario = require("scenario")
local ffi = require("ffi")
local C = scenario.ffi()

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end


local function called(n)
  local x = leaf(n)		-- @work
  return x
end

local pointer = ffi.cast("double (*)(double)", called)

local function body()
  for _ = 1, 20 do
    C.c_call_back(pointer, 100)	-- @call
  end
end

-- Code that may be called back from C must not be compiled.
jit.off(body)

scenario.run({
  body = body,
  seen = { "body@call cdata.__call c:c_call_back [C] called@work leaf" },
  also = { "body", "body@call ffi.C.__index", "body@call cdata.__call",
	   "body@call cdata.__call c:c_call_back",
	   "body@call cdata.__call c:c_call_back [C] called" },
})
