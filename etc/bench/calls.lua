-- Call-heavy benchmarks for etc/bench/off_cost. Without an argument prints
-- their names, else runs one a few times and prints the shortest CPU time in
-- seconds.

local REPEATS = 3
local benchmarks = {}

function benchmarks.fib()
  local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
  return fib(31)
end

function benchmarks.methods()
  local Point = {}
  Point.__index = Point
  function Point:move(dx) self.x = self.x + dx return self end
  function Point:get() return self.x end
  local p, sum = setmetatable({ x = 0 }, Point), 0
  for i = 1, 1000000 do sum = sum + p:move(i % 3):get() end
  return sum
end

function benchmarks.fast_functions()
  local floor, max, byte, type, select = math.floor, math.max, string.byte, type, select
  local sum = 0
  for i = 1, 1000000 do
    sum = sum + floor(i / 3) + max(i, 7) + byte("abc", i % 3 + 1) + select("#", i, type(i))
  end
  return sum
end

function benchmarks.tables()
  local sum = 0
  for i = 1, 200000 do
    local t = { i, i + 1, i + 2, x = i }
    t[#t + 1] = t.x
    table.insert(t, i)
    for _, v in ipairs(t) do sum = sum + v end
    for _ in pairs(t) do sum = sum + 1 end
  end
  return sum
end

function benchmarks.closures()
  local function counter()
    local n = 0
    return function(k)
      n = n + k
      return n
    end
  end
  local sum = 0
  for i = 1, 500000 do
    local c = counter()
    c(i)
    c(1)
    sum = sum + c(2)
  end
  return sum
end

function benchmarks.coroutines()
  local sum = 0
  local co = coroutine.wrap(function()
    for i = 1, 2000000 do coroutine.yield(i) end
  end)
  for _ = 1, 2000000 do sum = sum + co() end
  return sum
end

-- New coroutines grow their stacks.
function benchmarks.stacks()
  local function down(n) return n == 0 and 0 or 1 + down(n - 1) end
  local sum = 0
  for _ = 1, 3500 do
    sum = sum + coroutine.wrap(down)(1000)
  end
  return sum
end

local run = benchmarks[arg[1]]
if run then
  local best = math.huge
  for _ = 1, REPEATS do
    collectgarbage()
    local start = os.clock()
    run()
    best = math.min(best, os.clock() - start)
  end
  print(best)
elseif arg[1] then
  error("no benchmark " .. arg[1])
else
  local names = {}
  for name in pairs(benchmarks) do names[#names + 1] = name end
  table.sort(names)
  print(table.concat(names, " "))
end
