-- Metamethods inlined into a trace.

local scenario = require("scenario")

local mt = {}

mt.__add = function(a, b)
  local x = a[1] * 3 % 1013
  x = x * 5 % 1019
  a[1] = x * 7 % 1021
  return a
end

mt.__index = function(t, key)
  local x = t[1] * 3 % 1013
  x = x * 5 % 1019
  return x * 7 % 1021
end

local object = setmetatable({ 1 }, mt)

local function body()
  local x = object
  for _ = 1, 500 do
    x = x + 1			-- @add
    x[1] = x.field		-- @index
  end
end

scenario.run({
  body = body,
  seen = { "body@add __add", "body@index __index" },
  also = { "body" },
})
