-- The function that gives load the pieces of a chunk, called by the parser; and the
-- chunk.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local pieces = { "local leaf = ... ", "local x = leaf(100) ", "return x" }
local at

local function reader()
  leaf(100)			-- @read
  at = at + 1
  return pieces[at]
end

local function body()
  for _ = 1, 5 do
    at = 0
    local chunk = load(reader, "=pieces")	-- @load
    chunk(leaf)			-- @run
  end
end

scenario.run({
  body = body,
  seen = { "body@load load [C] [C] reader@read leaf", "body@run main(pieces)@1 leaf" },
  also = { "body", "body@load load", "body@load load [C]",
	   "body@load load [C] [C] reader", "body@run main(pieces)" },
})
