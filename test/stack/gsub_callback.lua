-- The function that string.gsub calls for each match, from C.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function replace(word)
  leaf(50)			-- @work
  return word
end

local function body()
  local text = "one two three four"
  for _ = 1, 10 do
    text = text:gsub("%a+", replace)	-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call string.gsub [C] replace@work leaf" },
  also = { "body", "body@call string.gsub", "body@call string.gsub [C] replace" },
})
