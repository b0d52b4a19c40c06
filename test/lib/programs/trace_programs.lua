----------------------------------------------------------------------------
-- Small programs that the JIT compiles in many ways, for tests of compiled code: inlined
-- functions, side traces, links of all kinds.
--
-- trace_programs.list holds { name = , run = } in a fixed order; run() is
-- deterministic and returns a number. trace_programs.run() runs all of them and
-- returns the numbers in one string.
----------------------------------------------------------------------------

local programs = { list = {} }

local function add(name, run)
  programs.list[#programs.list + 1] = { name = name, run = run }
end

local N = 400

-- -- Inlined functions ---------------------------------------------------------

local function square(x) return x * x end
local function norm(x, y) return square(x) + square(y) end
local function clamp(x, lo, hi)
  if x < lo then return lo elseif x > hi then return hi end
  return x
end

add("inlined", function()
  local sum = 0
  for i = 1, N do
    sum = sum + norm(i, i + 1) % 7
    sum = sum + clamp(i, 3, 5)
  end
  return sum
end)

add("side_traces_in_inlined", function()
  local function pick(i)
    if i % 3 == 0 then return square(i) end
    if i % 5 == 0 then return clamp(i, 7, 100) end
    return i
  end
  local function outer(i) return pick(i) + pick(i + 1) end
  local sum = 0
  for i = 1, N * 4 do sum = (sum + outer(i)) % 1000003 end
  return sum
end)

add("closures_of_one_prototype", function()
  local function adder(n) return function(x) return x + n end end
  local list = {}
  for i = 1, 8 do list[i] = adder(i) end
  local sum = 0
  for i = 1, N * 3 do
    local f = list[i % 8 + 1]
    sum = sum + f(i) % 3
  end
  return sum
end)

add("method_calls", function()
  local class = {}
  class.__index = class
  function class:get() return self.x end
  function class:add(n) self.x = (self:get() + n) % 1009 return self end
  local obj = setmetatable({ x = 1 }, class)
  for i = 1, N do obj:add(i):add(1) end
  return obj.x
end)

add("varargs", function()
  local function count(...) return select("#", ...) end
  local function sum2(...)
    local a, b = ...
    return a + b + count(...)
  end
  local function pass(...) return sum2(...) end
  local sum = 0
  for i = 1, N do sum = sum + pass(i, 2, 3) % 11 end
  return sum
end)

add("pcalls", function()
  local function risky(i)
    if i % 50 == 0 then error("fails", 0) end
    return i % 3
  end
  local function handler(m) return m end
  local sum = 0
  for i = 1, N * 2 do
    local ok, v = pcall(risky, i)
    if ok then sum = sum + v end
    ok, v = xpcall(risky, handler, i)
    if ok then sum = sum + v end
  end
  return sum
end)

-- -- Metamethods ----------------------------------------------------------------

add("metamethods", function()
  local mt = {}
  local function new(v) return setmetatable({ v = v }, mt) end
  mt.__add = function(a, b) return new(a.v + b.v) end
  mt.__index = function(t, k) return square(#k) end
  mt.__newindex = function(t, k, v) rawset(t, "v", (t.v + v) % 101) end
  mt.__lt = function(a, b) return a.v < b.v end
  mt.__le = function(a, b) return a.v <= b.v end
  mt.__eq = function(a, b) return square(a.v) == square(b.v) end
  mt.__call = function(self, n) return self.v + n end
  mt.__concat = function(a, b) return new(1) end
  mt.__unm = function(a) return new(-a.v) end
  local a, sum = new(3), 0
  for i = 1, N do
    local b = a + new(i % 5)
    sum = sum + b.v + a.other
    a.field = i
    if a < b then sum = sum + 1 end
    if a <= b then sum = sum + 1 end
    if a == b then sum = sum + 1 end
    sum = sum + a(2) + (-b).v
    local c = a .. b
    sum = (sum + c.v) % 1000003
  end
  return sum
end)

-- -- Calls with unusual returns ----------------------------------------------------

add("tail_calls", function()
  local function last(x) return x % 13 end
  local function middle(x) return last(x + 1) end
  local function first(x) return middle(x + 1) end
  local function loop(n, acc)
    if n == 0 then return acc end
    return loop(n - 1, acc + first(n))
  end
  local sum = loop(N, 0)
  for i = 1, N do sum = sum + first(i) end
  return sum
end)

add("recursion_up", function()
  local function up(n) if n == 0 then return 0 end return 1 + up(n - 1) end
  local sum = 0
  for _ = 1, 30 do sum = sum + up(60) end
  return sum
end)

add("recursion_down", function()
  local function depth(t, n)
    if n == 0 then return t end
    local r = depth(t, n - 1)
    r.x = r.x + 1
    return r
  end
  local t = { x = 0 }
  for _ = 1, 60 do depth(t, 50) end
  return t.x
end)

add("recursion_tree", function()
  local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end
  return fib(15)
end)

add("mutual_recursion", function()
  local even, odd
  function even(n) if n == 0 then return 1 end return odd(n - 1) end
  function odd(n) if n == 0 then return 0 end local r = even(n - 1) return r + 1 end
  local sum = 0
  for i = 1, 100 do sum = sum + even(i % 40) end
  return sum
end)

add("returns_below_the_start", function()
  local function inner(t, i)
    if t[i % 7] then return i end
    return 0
  end
  local function outer(t, i) local v = inner(t, i) return v + 1 end
  local t, sum = { true, nil, true, true, nil, true }, 0
  for i = 1, N * 2 do sum = sum + outer(t, i) % 5 end
  return sum
end)

-- -- Loops --------------------------------------------------------------------------

add("nested_loops", function()
  local sum = 0
  for i = 1, 60 do
    for j = 1, i % 20 do
      for _ = 1, 3 do sum = sum + square(j) % 5 end
    end
  end
  return sum
end)

add("while_repeat", function()
  local sum, i = 0, 0
  while i < N do
    i = i + 1
    local j = 0
    repeat j = j + 1 sum = sum + clamp(j, 0, 2) until j >= 3
  end
  return sum
end)

add("iterators", function()
  local t = {}
  for i = 1, 100 do t[i] = i; t["k" .. i] = i end
  local function range(n)
    return function(_, i) if i < n then return i + 1 end end, nil, 0
  end
  local sum = 0
  for _ = 1, 5 do
    for _, v in ipairs(t) do sum = sum + v end
    for _, v in pairs(t) do sum = sum + v % 3 end
    for i in range(100) do sum = sum + square(i) % 3 end
  end
  return sum
end)

add("many_values", function()
  local a, b, c, d, e, f, g, h = 1, 2, 3, 4, 5, 6, 7, 8
  local p, q, r, s, t, u, v, w = 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5
  local function mix(x, y) return (x + y) % 1009 end
  for i = 1, N do
    a, b, c, d = mix(a, b), mix(b, c), mix(c, d), mix(d, e)
    e, f, g, h = mix(e, f), mix(f, g), mix(g, h), mix(h, a)
    p, q, r, s = mix(p, q), mix(q, r), mix(r, s), mix(s, t)
    t, u, v, w = mix(t, u), mix(u, v), mix(v, w), mix(w, p)
    if i % 9 == 0 then a, p = p, a end
  end
  return a + b + c + d + e + f + g + h + p + q + r + s + t + u + v + w
end)

-- -- Interpreted code in between ----------------------------------------------------

add("stitched", function()
  local function touch(i)
    debug.getinfo(1, "l")  -- LuaJIT never compiles it.
    return square(i)
  end
  local sum = 0
  for i = 1, N do
    sum = sum + touch(i) % 7
    sum = sum + #debug.traceback("x", 1) % 2
  end
  return sum
end)

add("builtins", function()
  local t, sum = {}, 0
  for i = 1, N do
    t[#t + 1] = tostring(i)
    sum = sum + #string.rep("x", i % 5) + math.max(i, 7) % 3
    sum = sum + string.byte("abc", i % 3 + 1) + math.floor(i / 3)
    if i % 40 == 0 then sum = sum + #table.concat(t) t = {} end
  end
  table.sort(t, function(a, b) return square(#a) < square(#b) end)
  local text = string.rep("word ", 60):gsub("%w+", function(s) return s .. square(2) end)
  return sum + #text
end)

add("coroutines", function()
  local gen = coroutine.wrap(function()
    local i = 0
    while true do
      for _ = 1, 20 do i = i + square(2) end
      coroutine.yield(i)
    end
  end)
  local sum = 0
  for _ = 1, N do sum = sum + gen() % 3 end
  local co = coroutine.create(function(n)
    local s = 0
    for i = 1, n do s = s + norm(i, 1) % 5 end
    return s
  end)
  local _, v = coroutine.resume(co, N)
  return sum + v
end)

add("allocation", function()
  local function point(x, y) return { x = x, y = y } end
  local function shift(p) return point(p.x + 1, p.y) end
  local keep, sum = {}, 0
  for i = 1, N do
    local p = shift(point(i, 2))
    if i % 4 == 0 then keep[i % 16] = { p } end
    sum = sum + p.x
    keep[20] = "s" .. i
  end
  return sum
end)

-- -- All ------------------------------------------------------------------------------

function programs.run()
  local results = {}
  for i, p in ipairs(programs.list) do
    results[i] = p.name .. "=" .. tostring(p.run())
  end
  return table.concat(results, " ")
end

return programs
