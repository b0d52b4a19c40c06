-- Allocation in a loop: the collector's steps belong to the line that
-- allocates.

local scenario = require("scenario")

local keep

local function make(i)
  local t = { i, i + 1, i + 2 }	-- @make
  keep = t			-- @keep
  return t
end

local function body()
  for i = 1, 400 do
    make(i)			-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call make@make" },
  also = { "body", "body@call make" },
})
