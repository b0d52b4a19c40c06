-- A coroutine that resumes another one. Both resumers are in the stack.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function innermost()
  leaf(100)			-- @work
  coroutine.yield()		-- @yield
  leaf(100)			-- @work
end

local function outermost()
  local co = coroutine.create(innermost)	-- @create
  coroutine.resume(co)		-- @inner
  leaf(100)			-- @between
  coroutine.resume(co)		-- @inner
end

local function body()
  for _ = 1, 5 do
    local co = coroutine.create(outermost)	-- @outer
    coroutine.resume(co)	-- @outer
  end
end

scenario.run({
  body = body,
  seen = { "body@outer coroutine.resume [coroutine] outermost@inner coroutine.resume " ..
	   "[coroutine] innermost@work leaf",
	   "body@outer coroutine.resume [coroutine] outermost@between leaf" },
  also = { "body", "body@outer coroutine.create", "body@outer coroutine.resume",
	   "body@outer coroutine.resume [coroutine] outermost",
	   "body@outer coroutine.resume [coroutine] outermost@create coroutine.create",
	   "body@outer coroutine.resume [coroutine] outermost@inner coroutine.resume",
	   "body@outer coroutine.resume [coroutine] outermost@inner coroutine.resume " ..
	   "[coroutine] innermost",
	   "body@outer coroutine.resume [coroutine] outermost@inner coroutine.resume " ..
	   "[coroutine] innermost@yield coroutine.yield" },
})
