-- Allocation in a loop: marks show the collector's steps. In the interpreter they belong
-- to the line that allocates. Compiled code checks once in each round, at the loop's
-- beginning, whether a step is due.

local scenario = require("scenario")

local keep

local function make(i)
  local t = { i, i + 1, i + 2 }	-- @make
  keep = t			-- @keep
  return t
end

local function body()
  for i = 1, 400 do		-- @loop
    make(i)			-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call make@make" },
  seen_compiled = { "body@loop [GC]" },
  also = { "body", "body@call make", "body@call [GC]",
	   "body@call make@make [GC]" },
})
