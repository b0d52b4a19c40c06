-- A function called by pcall, and one called by a pcall within a pcall.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function body()
  for _ = 1, 20 do
    pcall(leaf, 100)		-- @once
    pcall(pcall, leaf, 100)	-- @twice
  end
end

scenario.run({
  body = body,
  seen = { "body@once pcall leaf", "body@twice pcall pcall leaf" },
  also = { "body", "body@once pcall", "body@twice pcall pcall?" },
})
