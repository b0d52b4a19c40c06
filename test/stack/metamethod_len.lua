-- The metamethod __len of a userdata.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local object = newproxy(true)

getmetatable(object).__len = function(object)
  local x = leaf(100)		-- @work
  return x
end

local function body()
  for _ = 1, 20 do
    local _ = #object	-- @use
  end
end

scenario.run({
  body = body,
  seen = { "body@use __len@work leaf" },
  also = { "body", "body@use __len" },
})
