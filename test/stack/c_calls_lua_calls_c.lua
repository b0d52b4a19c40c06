-- C and Lua functions in turn.

local scenario = require("scenario")
local c = scenario.c()

local function inner(n)
  c.spin(n)			-- @spin
  return n
end

local function middle(n)
  c.pcall(inner, n)		-- @pcall
  return n
end

local function body()
  for _ = 1, 10 do
    c.call(middle, 300)		-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call C:c_call [C] middle@pcall C:c_pcall [C] inner@spin C:c_spin " ..
	   "c:c_burn_outer c:c_burn" },
  also = { "body", "body@call C:c_call", "body@call C:c_call [C] middle",
	   "body@call C:c_call [C] middle@pcall C:c_pcall",
	   "body@call C:c_call [C] middle@pcall C:c_pcall [C] inner",
	   "body@call C:c_call [C] middle@pcall C:c_pcall [C] inner@spin C:c_spin",
	   "body@call C:c_call [C] middle@pcall C:c_pcall [C] inner@spin C:c_spin " ..
	   "c:c_burn_outer" },
})
