-- The metamethod __eq, called for a comparison of different tables.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local mt = {}

mt.__eq = function(a, b)
  local x = leaf(100)		-- @work
  return x > 0
end

local function body()
  local object = setmetatable({}, mt)
  local other = setmetatable({}, mt)
  for _ = 1, 20 do
    local _ = object == other	-- @use
  end
end

scenario.run({
  body = body,
  seen = { "body@use __eq@work leaf" },
  also = { "body", "body@use __eq", "body setmetatable" },
})
