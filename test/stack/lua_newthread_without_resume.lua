-- A function called on a coroutine without a resume, like in some C programs.

local scenario = require("scenario")
local c = scenario.c()

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function work(n)
  leaf(n)			-- @work
  return n
end

local function body()
  for _ = 1, 20 do
    c.call_on_thread(work, 200)	-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call C:c_call_on_thread [C] work@work leaf" },
  also = { "body", "body@call C:c_call_on_thread",
	   "body@call C:c_call_on_thread [C] work" },
})
