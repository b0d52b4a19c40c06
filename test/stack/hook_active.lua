-- A hook of debug.sethook for lines, calls and counts. With the hook, code runs
-- interpreted.

local scenario = require("scenario")

local calls = 0

local function hook()
  local x = 0
  for i = 1, 20 do x = x + i % 7 end
  calls = calls + 1
end

local function callee(n)
  local x = n * 3
  return x
end

local function body()
  local x = 0
  debug.sethook(hook, "cl", 10)	-- @set
  for i = 1, 40 do
    x = callee(i)		-- @call
  end
  debug.sethook()		-- @set
  return x
end

scenario.run({
  body = body, traced = false,
  seen = { "body@call callee [C] hook", "body@call [C] hook" },
  also = { "body", "body@set debug.sethook", "body [C] hook",
	   "body@set debug.sethook [C] hook", "body@call callee" },
})
