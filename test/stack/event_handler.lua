-- A handler of a VM event, which the parser calls protected; also in a coroutine. Newer
-- LuaJITs run it on its own thread.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function handler()
  leaf(300)			-- @work
end

local function inner()
  loadstring("return 1")	-- @load
  leaf(300)			-- @after
end

local function body()
  jit.attach(handler, "bc")	-- @attach
  inner()			-- @call
  coroutine.wrap(inner)()	-- @wrap
  jit.attach(handler)		-- @detach
end

local CALL, WRAP = "body@call inner@load loadstring",
  "body@wrap coroutine.wrap.iterator [coroutine] inner@load loadstring"

scenario.run({
  body = body,
  seen = { CALL .. " [C] [C] handler@work leaf", WRAP .. " [C] [C] handler@work leaf", "body@call inner@after leaf",
	   "body@wrap coroutine.wrap.iterator [coroutine] inner@after leaf" },
  also = { "body", "body@attach jit.attach", "body@detach jit.attach", "body@attach", "body@detach",
	   "body@call", "body@call inner", CALL, CALL .. " [C] [C] handler", "body@wrap",
	   "body@wrap coroutine.wrap", "body@wrap coroutine.wrap.iterator",
	   "body@wrap coroutine.wrap.iterator [coroutine] inner", WRAP, WRAP .. " [C] [C] handler" },
})
