-- Single samples come in the order of time; samples of the same time come in the order of
-- the stream. The order of the threads does not matter.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local timeline = require("sysprof.model.timeline")

local seed = 1
local function random(n)
  seed = (seed * 16807) % 2147483647
  return seed % n + 1
end

-- Adds runs of samples; the weight of a sample is its number.
local function check(what, lengths, step)
  local line, expected = timeline.new(), {}
  for _, length in ipairs(lengths) do
    local time = random(20)
    for _ = 1, length do
      time = time + random(step) - 1
      expected[#expected + 1] = { time = time, number = #expected }
      line:add(time, #expected - 1, random(9))
    end
  end
  table.sort(expected, function(a, b)
    if a.time ~= b.time then return a.time < b.time end
    return a.number < b.number
  end)
  -- Twice, and with more samples than before.
  for _ = 1, 2 do
    local i = 0
    for time, weight in line:in_order() do
      i = i + 1
      local e = expected[i] or {}
      if time ~= e.time or weight ~= e.number then
	t.ok(false, ("%s: sample %d is %s/%s, expected %s/%s"):format(what, i, time, weight,
								      e.time, e.number))
	break
      end
    end
    t.equal(i, #expected, what .. ": samples")
  end
  line:add(0, 2^30, 1)
  local time, weight = line:in_order()()
  t.ok(time == 0 and weight == 2^30, what .. ": one more, heavy")
end

check("none", {}, 1)
check("one", { 1 }, 1)
check("one run", { 3000 }, 3)
check("two runs", { 5, 1700 }, 2)
check("three runs", { 400, 1, 90 }, 3)
check("all at one time", { 30, 30, 30 }, 1)
for n = 1, 40 do
  local lengths = {}
  for i = 1, n do lengths[i] = random(n % 3 == 0 and 1 or 60) end
  check(n .. " runs", lengths, n % 4 + 1)
end

t.finish()
