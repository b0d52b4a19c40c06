-- Iterators: ipairs, pairs, table.foreach, and one in Lua.

local scenario = require("scenario")

local function mix(x)
  x = x * 3 % 1013
  x = x * 5 % 1019
  return x * 7 % 1021
end

local LIST = {}
for i = 1, 50 do LIST[i] = i end

local function iterator(list, i)
  i = i + 1
  local value = list[i]
  if value then
    value = mix(value)		-- @mix
    return i, value
  end
end

local result = {}

local function each(i, value)
  result[1] = mix(value)	-- @each
end

local function body()
  local x = 0
  for _, value in ipairs(LIST) do	-- @ipairs
    x = mix(x + value)		-- @in_ipairs
  end
  for _, value in pairs(LIST) do	-- @pairs
    x = mix(x + value)		-- @in_pairs
  end
  for _, value in iterator, LIST, 0 do	-- @iterator
    x = x + value
  end
  table.foreach(LIST, each)	-- @foreach
  table.foreachi(LIST, each)	-- @foreachi
end

scenario.run({
  body = body,
  seen = { "body@in_ipairs mix", "body@in_pairs mix", "body@iterator iterator@mix mix",
	   "body@foreach builtin each@each mix",
	   "body@foreachi builtin each@each mix" },
  also = { "body", "body@ipairs ipairs", "body@ipairs ipairs.iterator",
	   "body@pairs pairs", "body@pairs next", "body@iterator iterator",
	   "body@foreach builtin", "body@foreachi builtin",
	   "body@foreach builtin each", "body@foreachi builtin each" },
})
