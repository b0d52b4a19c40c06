-- The comparator of table.sort, called from C.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function compare(a, b)
  leaf(30)			-- @work
  return a < b
end

local function body()
  for _ = 1, 5 do
    local list = { 3, 1, 4, 1, 5, 9, 2, 6 }	-- @list
    table.sort(list, compare)	-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call table.sort [C] compare@work leaf" },
  also = { "body", "body@call table.sort", "body@call table.sort [C] compare" },
})
