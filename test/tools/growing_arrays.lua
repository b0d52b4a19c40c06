-- Arrays outside of the collector and the maps that grow in them, compiled in many ways: each
-- pair keeps its number, each array its elements, and the collector frees what is dropped. A
-- reference in plain tables knows the truth. The C library ends a program that frees twice.

local t = require("tools_test")
local array = require("sysprof.base.array")
local pairmap = require("sysprof.base.pairmap")

local ROUNDS = 12	-- Maps and arrays for each setting of the compiler.
local random = math.random
local seed = os.time()
math.randomseed(seed)
print("seed " .. seed)

local records = pairmap.kind("double a; int32_t b; int32_t c; double d;")
local numbers = array.kind("int32_t")

-- Returns what is wrong with a map of random pairs, else nil.
local function wrong_map(kind)
  local map, known, count = pairmap.new(kind), {}, 0
  local span, step = random(1, 1e5), random(2) == 1 and 4096 or 1
  for _ = 1, math.floor(10 ^ (3.6 * random())) do
    local a, b = random(0, span) * step, random(0, 7)
    local key = a * 8 + b
    local id, is_new = map:put(a, b)
    if known[key] ~= (not is_new and id or nil) then return ("%d %d has number %d"):format(a, b, id) end
    if is_new then
      count = count + 1
      if id ~= count then return ("new number %d after %d"):format(id, count - 1) end
      known[key] = id
    end
  end
  for key, id in pairs(known) do
    if map.list[id].a * 8 + map.list[id].b ~= key then return ("record %d"):format(id) end
  end
end

-- Returns what is wrong with an array that grows in two ways, else nil. Some are freed, the
-- others dropped.
local function wrong_array()
  local have = random(1, 8)
  local list = array.zeros(numbers, have)
  for _ = 1, random(1, 12) do
    for i = 0, have - 1 do
      if list[i] ~= 0 and list[i] ~= i + have then return ("element %d of %d"):format(i, have) end
    end
    local more = have * 2
    for i = 0, have - 1 do list[i] = i + more end
    if random(2) == 1 then
      list = array.widen(numbers, list, have, more)
    else
      list = array.resize(numbers, list, more)
      for i = have, more - 1 do list[i] = 0 end
    end
    have = more
  end
  if random(2) == 1 then array.free(list) end
end

local DEFAULTS = { 3, "hotloop=56", "hotexit=10", "maxtrace=1000", "maxmcode=512" }
local settings = {
  { 3 }, { 0 }, { 1 }, { 2 }, { "hotloop=1" }, { "hotloop=2" }, { "hotloop=7" }, { "hotexit=1" },
  { "hotloop=1", "hotexit=1" }, { "maxtrace=20" }, { "maxmcode=32" },
}
for _, flag in ipairs { "fold", "cse", "dce", "narrow", "loop", "fwd", "dse", "abc", "sink", "fuse" } do
  settings[#settings + 1] = { "-" .. flag, "hotloop=3", "hotexit=2" }
end

for _, setting in ipairs(settings) do
  local name = "-O" .. table.concat(setting, ",")
  jit.flush()
  jit.opt.start(unpack(DEFAULTS))
  jit.opt.start(unpack(setting))
  local what
  for _ = 1, ROUNDS do
    what = what or wrong_map(nil) or wrong_map(records) or wrong_array()
  end
  t.equal(what, nil, name)
end

t.finish()
