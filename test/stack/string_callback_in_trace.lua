-- A callback of string.gsub with its own trace: compiled code, called by C code, called
-- by compiled or interpreted code.

local scenario = require("scenario")

local function scramble(n)
  return (n * 31 + 7) % 1024
end

local function replace(letter)
  local x = #letter
  x = scramble(x)		-- @one
  x = scramble(x)		-- @two
  x = scramble(x)		-- @three
  if x < 0 then return "?" end
end

local TEXT = ("abcdefgh"):rep(20)

local function body()
  for _ = 1, 10 do
    string.gsub(TEXT, ".", replace)	-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call string.gsub", "body@call string.gsub [C] replace" },
  also = { "body", "body@call string.gsub [C] replace@one scramble",
	   "body@call string.gsub [C] replace@two scramble",
	   "body@call string.gsub [C] replace@three scramble" },
})
