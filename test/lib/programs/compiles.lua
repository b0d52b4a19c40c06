----------------------------------------------------------------------------
-- Compile-heavy work: many traces that run for a short time.
--
-- Returns a table of benchmarks by name: functions of a number of rounds. A round
-- takes about 10 ms. The results are the same on every machine.
----------------------------------------------------------------------------

local benchmarks = {}

-- New loops each time, with one root trace each.
function benchmarks.loads(rounds)
  local template = [[
    local t, s = ..., 0
    for i = 1, 70 do
      local x = t[i %% 4 + 1] * %d + i
      if x > %d then s = s + x %% 7 else s = s - 1 end
    end
    return s
  ]]
  local sum, t = 0, { 1, 2, 3, 4 }
  for i = 1, rounds * 500 do
    sum = sum + assert(loadstring(template:format(i % 9, i * 2)))(t)
  end
  return sum
end

-- The same loops, compiled again and again, with the functions they inline.
function benchmarks.flushes(rounds)
  local function add(a, b) return a + b end
  local function twice(a) return add(a, a) end
  local Point = {}
  Point.__index = Point
  function Point:move(d) self.x = twice(self.x) % 1000 + d return self end
  local function loop1(n) local s = 0 for i = 1, n do s = add(s, twice(i)) end return s end
  local function loop2(n)
    local p = setmetatable({ x = 1 }, Point)
    for i = 1, n do p:move(i):move(1) end
    return p.x
  end
  local function loop3(n)
    local t, s = {}, 0
    for i = 1, n do t[i] = twice(i) end
    for _, v in ipairs(t) do s = add(s, v) end
    return s + #("x"):rep(n)
  end
  local sum = 0
  for _ = 1, rounds * 100 do
    jit.flush()
    sum = sum + loop1(80) + loop2(80) + loop3(80)
  end
  return sum
end

-- A loop whose branches are taken one after the other: a tree of side traces.
function benchmarks.branches(rounds)
  local source = { "local a, s = 1, 0 for i = 1, 4000 do a = a * 16807 % 2147483647 local k = a % 32\n" }
  for k = 0, 31 do
    source[#source + 1] = ("%s k == %d then s = s + a %% %d\n"):format(
      k == 0 and "if" or "elseif", k, k + 3)
  end
  source[#source + 1] = "end end return s"
  source = table.concat(source)
  local sum = 0
  for _ = 1, rounds * 16 do sum = sum + assert(loadstring(source))() end
  return sum
end

-- Deep inlining, recursion that is unrolled, and calls of builtins.
function benchmarks.inlines(rounds)
  local source = { "local f0 = function(x) return x + 1 end\n" }
  for i = 1, 30 do
    source[#source + 1] = ("local f%d = function(x) return f%d(x) %% 1000 + %d end\n"):format(i,
      math.max(0, i - 12), i)
  end
  source[#source + 1] = "local function down(n) if n == 0 then return 0 end return down(n - 1) + 1 end\n"
  for i = 12, 30 do
    source[#source + 1] = ("for i = 1, 70 do s = s + f%d(i) + math.max(f%d(i), 5) end\n"):format(i, i - 4)
  end
  source[#source + 1] = "for i = 1, 70 do s = s + down(10) end return s"
  source = "local s = 0\n" .. table.concat(source)
  local sum = 0
  for _ = 1, rounds * 12 do sum = sum + assert(loadstring(source))() end
  return sum
end

-- Loops that the compiler records and gives up, again and again.
function benchmarks.aborts(rounds)
  local template = [[
    local s = 0
    for i = 1, 1500 do
      local x = i %% %d + 3
      s = s + x * 2
      s = s + (function() return s end)() %% 5
    end
    return s
  ]]
  local sum = 0
  for i = 1, rounds * 60 do
    sum = sum + assert(loadstring(template:format(i % 5 + 1)))()
  end
  return sum
end

return benchmarks
