-- Finalizers of a userdata and of a cdata, run by a collection.

local scenario = require("scenario")
local ffi = require("ffi")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function finalize_proxy()
  leaf(300)			-- @proxy
end

local function finalize_cdata()
  leaf(300)			-- @cdata
end

local template = newproxy(true)
getmetatable(template).__gc = finalize_proxy
local buffer = ffi.typeof("int[1]")

local function body()
  for _ = 1, 10 do
    newproxy(template)		-- @make
    ffi.gc(buffer(), finalize_cdata)	-- @make
  end
  collectgarbage()		-- @collect
end

-- Only the body collects.
collectgarbage("stop")

scenario.run({
  body = body,
  seen = { "body@collect collectgarbage [C] finalize_proxy@proxy leaf",
	   "body@collect collectgarbage [C] finalize_cdata@cdata leaf" },
  also = { "body", "body@make newproxy", "body@make ffi.gc",
	   "body@make cdata.__call",
	   "body@collect collectgarbage",
	   "body@collect collectgarbage [C] finalize_proxy",
	   "body@collect collectgarbage [C] finalize_cdata" },
})
