-- A coroutine that yields within a pcall. Other places resume it.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function step()
  leaf(100)			-- @first
  coroutine.yield()		-- @yield
  leaf(100)			-- @second
end

local function task()
  pcall(step)			-- @protected
end

local function body()
  for _ = 1, 10 do
    local co = coroutine.create(task)	-- @start
    coroutine.resume(co)	-- @start
    coroutine.resume(co)	-- @again
  end
end

scenario.run({
  body = body,
  seen = { "body@start coroutine.resume [coroutine] task@protected pcall step@first leaf",
	   "body@again coroutine.resume [coroutine] task@protected pcall step@second leaf" },
  also = { "body", "body@start coroutine.create", "body@start coroutine.resume",
	   -- While it is resumed, its yield is still there.
	   "body@again coroutine.resume [coroutine] task@protected pcall step@yield " ..
	   "coroutine.yield",
	   "body@again coroutine.resume",
	   "body@start coroutine.resume [coroutine] task",
	   "body@again coroutine.resume [coroutine] task",
	   "body@start coroutine.resume [coroutine] task@protected pcall",
	   "body@again coroutine.resume [coroutine] task@protected pcall",
	   "body@start coroutine.resume [coroutine] task@protected pcall step",
	   "body@again coroutine.resume [coroutine] task@protected pcall step",
	   "body@start coroutine.resume [coroutine] task@protected pcall step@yield " ..
	   "coroutine.yield" },
})
