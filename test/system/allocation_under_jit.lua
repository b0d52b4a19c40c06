-- Survives allocation and garbage collection from compiled code: trees, objects and text,
-- like in a JSON library.

local workloads = require("workloads")

local function encode(v)
  if type(v) ~= "table" then return ("%q"):format(tostring(v)) end
  local parts = {}
  for i = 1, #v do parts[i] = encode(v[i]) end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function decode(s, at)
  if s:sub(at, at) == "[" then
    local list = {}
    at = at + 1
    while s:sub(at, at) ~= "]" do
      list[#list + 1], at = decode(s, at)
      if s:sub(at, at) == "," then at = at + 1 end
    end
    return list, at + 1
  end
  local text, stop = s:match('^"([^"]*)"()', at)
  return { text = text }, stop
end

local function json()
  local sum = 0
  for i = 1, 150 do
    local doc = { i, { i + 1, { "x", "y" .. i }, {} }, ("z"):rep(i % 30) }
    local back = decode(encode({ doc, doc, { doc, doc } }), 1)
    sum = sum + #back[3][2][2][2][2].text
  end
  return sum
end

local trees, objects = workloads.by_name("trees"), workloads.by_name("objects")
require("survive").run("allocation", function()
  return trees.run(1) + objects.run(1) + json()
end)
