-- Many branches, each taken now and then: more exits of traces than rounds, until LuaJIT
-- compiles side traces.

local scenario = require("scenario")

local function branch(x)
  if x % 2 == 0 then x = x + 3 end
  if x % 3 == 0 then x = x + 5 end
  if x % 5 == 0 then x = x + 7 end
  if x % 7 == 0 then x = x + 11 end
  if x % 11 == 0 then x = x + 13 end
  if x % 13 == 0 then x = tostring(x) + 17 end
  return x % 65521
end

local function body()
  local x = 1
  for i = 1, 300 do
    x = branch(x * 31 + i)	-- @call
  end
  return x
end

scenario.run({
  body = body,
  seen = { "body@call branch" },
  also = { "body", "body@call branch [EXIT]", "body [EXIT]", "body@call branch tostring" },
})
