-- The metamethod __index, called for a field that the table lacks.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local mt = {}

mt.__index = function(object, key)
  local x = leaf(100)		-- @work
  return x
end

local function body()
  local object = setmetatable({}, mt)
  for _ = 1, 20 do
    local _ = object.field	-- @use
  end
end

scenario.run({
  body = body,
  seen = { "body@use __index@work leaf" },
  also = { "body", "body@use __index", "body setmetatable" },
})
