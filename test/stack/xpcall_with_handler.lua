-- The handler of xpcall runs on top of the function that raised the error, not below it.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function handler(message)
  leaf(100)			-- @handling
  return message
end

local function thrower(n)
  if n > 0 then
    error("thrown")		-- @throw
  end
  return n
end

local function body()
  for _ = 1, 20 do
    xpcall(thrower, handler, 1)	-- @call
    xpcall(leaf, handler, 100)	-- @good
  end
end

scenario.run({
  body = body,
  seen = { "body@call xpcall thrower@throw error [C] handler@handling leaf",
	   "body@good xpcall leaf" },
  also = { "body", "body@call xpcall", "body@good xpcall",
	   "body@call xpcall thrower", "body@call xpcall thrower@throw error",
	   "body@call xpcall thrower@throw error [C] handler" },
})
