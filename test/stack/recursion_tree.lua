-- A recursion with calls on two lines.

local scenario = require("scenario")

local function fib(n)
  if n < 2 then return n end
  local a = fib(n - 1)		-- @call
  local b = fib(n - 2)		-- @call
  return a + b
end

local function body()
  fib(14)			-- @start
end

scenario.run({
  body = body,
  -- While an exit rebuilds the frames of a recursion, the number of rebuilt frames is
  -- unknown.
  broken_share = 0.03,
  seen = { "body@start fib@call{7} fib", "body@start fib@call{8} fib" },
  also = { "body", "body@start fib", "body@start fib@call{1,13} fib" },
})
