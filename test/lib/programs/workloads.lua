----------------------------------------------------------------------------
-- Real Lua work of eight kinds, for the tests that profile it.
--
-- workloads.list holds { name = , run = } in a fixed order. run(iterations) is
-- deterministic and returns a checksum, which must be the same with and without a
-- profile. One iteration takes some 50 ms in the interpreter.
----------------------------------------------------------------------------

local workloads = { list = {} }

local MOD = 2^31 - 1

local function mix(sum, x)
  return (sum * 31 + x) % MOD
end

-- rounds: turns of the loop in run that make one iteration.
local function add(name, rounds, run)
  workloads.list[#workloads.list + 1] = {
    name = name,
    run = function(iterations) return run(iterations * rounds) end
  }
end

-- Pseudo-random numbers, the same on every machine.
local function random(seed)
  return function(n)
    seed = (seed * 16807) % MOD
    return seed % n + 1
  end
end

-- -- Strings ---------------------------------------------------------------

local words = { "stack", "frame", "trace", "signal", "chunk", "sample" }

local function expand(template, values)
  return (template:gsub("%$(%w+)", function(key)
    return (values[key]:gsub("[aeiou]", { a = "4", e = "3", i = "1" }))
  end))
end

local function escape(s)
  return (s:gsub("[^%w]", function(c) return ("%%%02x"):format(c:byte()) end))
end

local function hash(s)
  local h = #s
  for i = 1, #s do h = (h * 33 + s:byte(i)) % MOD end
  return h
end

add("strings", 8, function(iterations)
  local sum = 0
  for _ = 1, iterations do
    for i = 1, 600 do
      local word = words[i % #words + 1]
      local line = expand("the $what of line $n is $what; $rest",
			  { what = word, n = tostring(i), rest = word:rep(3, ",") })
      local parts = {}
      for part in line:gmatch("[^;, ]+") do
	parts[#parts + 1] = part:upper():reverse()
      end
      line = escape(table.concat(parts, "/")):lower()
      sum = mix(sum, hash(line) + (line:find("4", 5, true) or 0))
    end
  end
  return sum
end)

-- -- Objects ---------------------------------------------------------------

local Account = {}
Account.__index = Account

function Account.new(class, owner)
  return setmetatable({ owner = owner, balance = 0, log = 0 }, class)
end

function Account:deposit(amount)
  self.balance = self.balance + amount
  self:note(amount)
  return self
end

function Account:withdraw(amount)
  if amount > self:limit() then return self end
  self.balance = self.balance - amount
  self:note(-amount)
  return self
end

function Account:limit() return self.balance end
function Account:note(amount) self.log = (self.log * 7 + amount) % 65521 end

local Credit = setmetatable({}, { __index = Account })
Credit.__index = Credit

function Credit:limit() return Account.limit(self) + 500 end

local Savings = setmetatable({}, { __index = Credit })
Savings.__index = Savings

function Savings:deposit(amount)
  return Credit.deposit(self, amount + math.floor(amount / 10))
end

add("objects", 6, function(iterations)
  local sum = 0
  for _ = 1, iterations do
    local random = random(7)
    local accounts = {}
    for i = 1, 30 do
      local class = i % 3 == 0 and Savings or i % 3 == 1 and Credit or Account
      accounts[i] = Account.new(class, "owner" .. i)
    end
    for _ = 1, 18000 do
      local a, b = accounts[random(30)], accounts[random(30)]
      local amount = random(100)
      a:deposit(amount):withdraw(random(200))
      if a:limit() > b:limit() then b:deposit(amount) end
    end
    for i = 1, 30 do sum = mix(sum, accounts[i].log + accounts[i].balance) end
  end
  return sum
end)

-- -- Sorting ---------------------------------------------------------------

add("sort", 6, function(iterations)
  local sum = 0
  for round = 1, iterations do
    local random = random(round)
    local list = {}
    for i = 1, 4000 do
      list[i] = { key = random(1000), name = words[random(#words)], at = i }
    end
    table.sort(list, function(a, b)
      if a.key ~= b.key then return a.key < b.key end
      if a.name ~= b.name then return a.name < b.name end
      return a.at < b.at
    end)
    for i = 1, #list, 17 do sum = mix(sum, list[i].at) end
    -- A comparator that calls a builtin, and one that fails half-way.
    table.sort(list, function(a, b) return math.max(a.at, 9) > math.max(b.at, 9) end)
    local left = 500
    local ok = pcall(table.sort, list, function(a, b)
      left = left - 1
      if left == 0 then error("enough") end
      return a.key > b.key
    end)
    sum = mix(sum, list[10].at + (ok and 1 or 0))
  end
  return sum
end)

-- -- Coroutines ------------------------------------------------------------

local function generate(n)
  return coroutine.wrap(function()
    for i = 1, n do coroutine.yield(i, i * i) end
  end)
end

local function filter(keep, source)
  return coroutine.wrap(function()
    for x in source do
      if keep(x) then coroutine.yield(x) end
    end
  end)
end

local function permute(list, n)
  if n == 0 then return coroutine.yield(list) end
  for i = 1, n do
    list[i], list[n] = list[n], list[i]
    permute(list, n - 1)
    list[i], list[n] = list[n], list[i]
  end
end

local function nest(depth)
  local co = coroutine.create(function(x)
    local inner = depth > 0 and nest(depth - 1)
    while true do
      if inner then x = x + select(2, coroutine.resume(inner, x)) end
      x = coroutine.yield(x % 1000003)
    end
  end)
  return co
end

add("coroutines", 20, function(iterations)
  local sum = 0
  for _ = 1, iterations do
    for i, square in generate(9000) do sum = mix(sum, i + square) end
    local source = generate(3000)
    for k = 2, 9 do source = filter(function(x) return x % (k * 7) ~= 0 end, source) end
    for x in source do sum = mix(sum, x) end
    for list in coroutine.wrap(function() permute({ 1, 2, 3, 4, 5, 6 }, 6) end) do
      sum = mix(sum, list[1] * 10 + list[6])
    end
    local co = nest(30)
    for i = 1, 300 do sum = mix(sum, select(2, coroutine.resume(co, i))) end
    for _ = 1, 300 do
      local _, message = coroutine.resume(coroutine.create(function()
	coroutine.yield(error({ code = 5 }))
      end))
      sum = mix(sum, message.code)
    end
  end
  return sum
end)

-- -- Metamethods -----------------------------------------------------------

local collected = 0
local Vector = {}

local function vector(x, y) return setmetatable({ x = x, y = y }, Vector) end

function Vector.__add(a, b) return vector(a.x + b.x, a.y + b.y) end
function Vector.__mul(a, k) return vector(a.x * k % 10007, a.y * k % 10007) end
function Vector.__eq(a, b) return a.x == b.x and a.y == b.y end
function Vector.__lt(a, b) return a.x < b.x or a.x == b.x and a.y < b.y end
function Vector.__le(a, b) return not (b < a) end
function Vector.__concat(a, b)
  local function text(v) return getmetatable(v) == Vector and v.x .. ":" .. v.y or v end
  return text(a) .. text(b)
end
function Vector.__call(v, k) return v.x * k + v.y end
function Vector.__index(v, key) return key == "length" and v.x + v.y or nil end
function Vector.__newindex(v, key, value) rawset(v, key, value % 97) end
function Vector.__unm(v) return vector(-v.x, -v.y) end

local function finalized()
  local proxy = newproxy(true)
  getmetatable(proxy).__gc = function()
    for i = 1, 5 do collected = collected + i % 2 end
  end
  return proxy
end

add("metamethods", 7, function(iterations)
  local sum = 0
  for _ = 1, iterations do
    local v, step = vector(1, 2), vector(3, 5)
    for i = 1, 4000 do
      v = (v + step) * (i % 5 + 1)
      v.last = i
      local text = "<" .. v .. ">" .. -v
      sum = mix(sum, v(i % 13) + v.length + v.last + #text)
      if v < step or v >= step and v == step then sum = sum + 1 end
      if i % 20 == 0 then finalized() end
    end
    collectgarbage()
    sum = mix(sum, collected > 0 and 1 or 0)
  end
  return sum
end)

-- -- Errors ----------------------------------------------------------------

local function fail(depth, what)
  if depth == 0 then error(what, 0) end
  return 1 + fail(depth - 1, what)
end

-- Catches on the way and throws again.
local function rethrow(depth)
  if depth == 0 then error("bottom", 0) end
  local ok, message = pcall(rethrow, depth - 1)
  if not ok then error(message .. depth, 0) end
end

add("errors", 3, function(iterations)
  local sum = 0
  local function handler(message)
    return debug.traceback("", 1) ~= "" and #tostring(message)
  end
  for _ = 1, iterations do
    for i = 1, 700 do
      local _, message = pcall(fail, i % 20, "failed" .. i % 10)
      sum = mix(sum, #message)
      -- Thrown through C functions: sort, gsub, tostring of a bad value.
      local ok1 = pcall(table.sort, { 3, 1, 2 }, function() fail(3, "sort") end)
      local ok2 = pcall(string.gsub, "abc", "%w", function() fail(2, "gsub") end)
      local ok3 = pcall(string.rep)
      local ok4 = pcall(function() local t = nil; return t.x end)
      sum = mix(sum, (ok1 or ok2 or ok3 or ok4) and 1 or 0)
      local _, size = xpcall(function() return fail(5, "handled") end, handler)
      sum = mix(sum, size)
      local _, again = xpcall(function() error() end, function() error("twice") end)
      sum = mix(sum, #type(again))
    end
    for _ = 1, 60 do
      local _, message = pcall(rethrow, 25)
      sum = mix(sum, #message)
    end
  end
  return sum
end)

-- -- Varargs ---------------------------------------------------------------

local function sum_of(...)
  local sum = 0
  for i = 1, select("#", ...) do sum = sum + (select(i, ...)) end
  return sum
end

local function reversed(n, x, ...)
  if n == 0 then return end
  if n == 1 then return x end
  return select(-1, ...), reversed(n - 1, x, ...)
end

local function pass(depth, ...)
  if depth == 0 then return ... end
  return pass(depth - 1, ...)
end

local function keep(depth, ...)
  if depth == 0 then return sum_of(...) end
  return keep(depth - 1, depth, ...) + select("#", ...)
end

add("varargs", 15, function(iterations)
  local sum = 0
  for _ = 1, iterations do
    for i = 1, 1500 do
      local list = {}
      for k = 1, i % 30 do list[k] = k * i end
      sum = mix(sum, sum_of(unpack(list)))
      sum = mix(sum, sum_of(pass(10, unpack(list, 1, math.min(#list, 8)))))
      sum = mix(sum, select("#", reversed(6, 1, 2, 3, 4, 5, 6)))
      sum = mix(sum, keep(10, i))
      sum = mix(sum, math.max(i, unpack(list)) + #string.char(pass(3, 65, 66)))
    end
  end
  return sum
end)

-- -- Trees -----------------------------------------------------------------

local function build(depth, value)
  if depth == 0 then return { value = value } end
  return { left = build(depth - 1, value * 2 % 1009),
	   right = build(depth - 1, value * 3 % 1009), name = "n" .. value % 50 }
end

local function check(tree)
  if tree.value then return tree.value end
  return (check(tree.left) * 5 + check(tree.right) + #tree.name) % MOD
end

local function insert(tree, key)
  if not tree then return { key = key } end
  if key < tree.key then tree.left = insert(tree.left, key)
  elseif key > tree.key then tree.right = insert(tree.right, key) end
  return tree
end

local function each(tree, visit)
  if not tree then return end
  each(tree.left, visit)
  visit(tree.key)
  each(tree.right, visit)
end

add("trees", 10, function(iterations)
  local sum = 0
  for _ = 1, iterations do
    for d = 4, 12 do sum = mix(sum, check(build(d, d))) end
    local random, tree = random(11), nil
    for _ = 1, 3000 do tree = insert(tree, random(100000)) end
    each(tree, function(key) sum = mix(sum, key) end)
  end
  return sum
end)

-- -- Access ----------------------------------------------------------------

function workloads.by_name(name)
  for _, w in ipairs(workloads.list) do
    if w.name == name then return w end
  end
end

-- Runs a workload for at least these seconds of CPU time. Returns the number of runs,
-- and whether each had the expected checksum.
function workloads.repeat_for(w, seconds, expected)
  local runs, same = 0, true
  local till = os.clock() + seconds
  repeat
    runs = runs + 1
    same = w.run(1) == expected and same
  until os.clock() >= till
  return runs, same
end

return workloads
