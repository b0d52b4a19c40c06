----------------------------------------------------------------------------
-- Call-heavy work for etc/bench/off_cost.
--
-- Returns its benchmarks by name, functions of a number of rounds with about
-- 10 ms each in the interpreter. The results are the same on every machine.
----------------------------------------------------------------------------

local benchmarks = {}

function benchmarks.fib(rounds)
  local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
  local sum = 0
  for _ = 1, rounds do sum = sum + fib(27) end
  return sum
end

function benchmarks.methods(rounds)
  local Point = {}
  Point.__index = Point
  function Point:move(dx) self.x = self.x + dx return self end
  function Point:get() return self.x end
  local p, sum = setmetatable({ x = 0 }, Point), 0
  for i = 1, rounds * 200000 do sum = sum + p:move(i % 3):get() end
  return sum
end

function benchmarks.fast_functions(rounds)
  local floor, max, byte, type, select = math.floor, math.max, string.byte, type, select
  local sum = 0
  for i = 1, rounds * 200000 do
    sum = sum + floor(i / 3) + max(i, 7) + byte("abc", i % 3 + 1) + select("#", i, type(i))
  end
  return sum
end

function benchmarks.tables(rounds)
  local sum = 0
  for i = 1, rounds * 36000 do
    local t = { i, i + 1, i + 2, x = i }
    t[#t + 1] = t.x
    table.insert(t, i)
    for _, v in ipairs(t) do sum = sum + v end
    for _ in pairs(t) do sum = sum + 1 end
  end
  return sum
end

function benchmarks.closures(rounds)
  local function counter()
    local n = 0
    return function(k)
      n = n + k
      return n
    end
  end
  local sum = 0
  for i = 1, rounds * 100000 do
    local c = counter()
    c(i)
    c(1)
    sum = sum + c(2)
  end
  return sum
end

function benchmarks.coroutines(rounds)
  local n, sum = rounds * 380000, 0
  local co = coroutine.wrap(function()
    for i = 1, n do coroutine.yield(i) end
  end)
  for _ = 1, n do sum = sum + co() end
  return sum
end

-- New coroutines grow their stacks.
function benchmarks.stacks(rounds)
  local function down(n) return n == 0 and 0 or 1 + down(n - 1) end
  local sum = 0
  for _ = 1, rounds * 600 do
    sum = sum + coroutine.wrap(down)(1000)
  end
  return sum
end

return benchmarks
