-- Coroutines that end by a return or by an error. Another resume leaves nothing of them
-- in the stack.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function ends()
  leaf(50)			-- @work
end

local function fails()
  leaf(50)			-- @work
  error("thrown")		-- @throw
end

local function body()
  for i = 1, 10 do
    local co = coroutine.create(i % 2 == 0 and ends or fails)	-- @create
    coroutine.resume(co)	-- @alive
    coroutine.resume(co)	-- @dead
    leaf(50)			-- @after
  end
end

scenario.run({
  body = body,
  seen = { "body@alive coroutine.resume [coroutine] ends@work leaf",
	   "body@alive coroutine.resume [coroutine] fails@work leaf",
	   "body@after leaf" },
  also = { "body", "body@create coroutine.create", "body@alive coroutine.resume",
	   "body@dead coroutine.resume",
	   "body@alive coroutine.resume [coroutine] ends",
	   "body@alive coroutine.resume [coroutine] fails",
	   "body@alive coroutine.resume [coroutine] fails@throw error" },
})
