-- The metamethod __add, called for an addition.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local mt = {}

mt.__add = function(a, b)
  local x = leaf(100)		-- @work
  return x
end

local function body()
  local object = setmetatable({}, mt)
  for _ = 1, 20 do
    local _ = object + 1	-- @use
  end
end

scenario.run({
  body = body,
  seen = { "body@use __add@work leaf" },
  also = { "body", "body@use __add", "body setmetatable" },
})
