-- A loop over a generator: coroutine.wrap's function resumes it.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function generator()
  for i = 1, 10 do
    leaf(50)			-- @work
    coroutine.yield(i)		-- @yield
  end
end

local function body()
  for _ in coroutine.wrap(generator) do	-- @loop
    leaf(50)			-- @each
  end
end

scenario.run({
  body = body,
  seen = { "body@loop coroutine.wrap.iterator [coroutine] generator@work leaf",
	   "body@each leaf" },
  also = { "body", "body@loop coroutine.wrap", "body@loop coroutine.wrap.iterator",
	   "body@loop coroutine.wrap.iterator [coroutine] generator",
	   "body@loop coroutine.wrap.iterator [coroutine] generator@yield coroutine.yield" },
})
