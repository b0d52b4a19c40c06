-- A coroutine that a C function resumes.

local scenario = require("scenario")
local c = scenario.c()

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function task(n)
  leaf(n)			-- @first
  coroutine.yield()		-- @yield
  leaf(n)			-- @second
end

local function body()
  for _ = 1, 20 do
    c.resume(task, 200)		-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call C:c_resume [coroutine] task@first leaf",
	   "body@call C:c_resume [coroutine] task@second leaf" },
  also = { "body", "body@call C:c_resume", "body@call C:c_resume [coroutine] task",
	   "body@call C:c_resume [coroutine] task@yield coroutine.yield" },
})
