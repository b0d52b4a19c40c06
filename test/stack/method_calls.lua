-- Methods of an object and of its class.

local scenario = require("scenario")

local base = {}
base.__index = base
local class = setmetatable({}, base)
class.__index = class

function base:scale(x)
  self.value = x * 3 % 1013 * 5 % 1019
  return self.value
end

function class:step(x)
  local y = self:scale(x + 1)	-- @scale
  self.value = y * 7 % 1021 * 3 % 1031
  return self.value
end

local function body()
  local object, x = setmetatable({ value = 1 }, class), 1
  for _ = 1, 500 do
    x = object:step(x)		-- @step
  end
end

scenario.run({
  body = body,
  seen = { "body@step step", "body@step step@scale scale" },
  also = { "body", "body setmetatable" },
})
