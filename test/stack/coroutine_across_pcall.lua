-- A coroutine that runs within a pcall and has one of its own.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function task()
  pcall(leaf, 100)		-- @work
end

local function resumer()
  local co = coroutine.create(task)	-- @create
  coroutine.resume(co)		-- @resume
end

local function body()
  for _ = 1, 10 do
    pcall(resumer)		-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call pcall resumer@resume coroutine.resume [coroutine] task@work " ..
	   "pcall leaf" },
  also = { "body", "body@call pcall", "body@call pcall resumer",
	   "body@call pcall resumer@create coroutine.create",
	   "body@call pcall resumer@resume coroutine.resume",
	   "body@call pcall resumer@resume coroutine.resume [coroutine] task",
	   "body@call pcall resumer@resume coroutine.resume [coroutine] task@work pcall" },
})
