-- A program whose functions a test edits and finds again. A tag ends the line of each definition.

local M = {}

-- -- Numbers -----------------------------------------------------------------

local function sieve(n) --#sieve
  local flags, count = {}, 0
  for i = 2, n do flags[i] = true end
  for i = 2, n do
    if flags[i] then
      count = count + 1
      for k = i * i, n, i do flags[k] = false end
    end
  end
  return count
end

local function gcd(a, b) --#gcd
  while b ~= 0 do
    a, b = b, a % b
  end
  return a
end

local function gcd_sum(n) --#gcd_sum
  local sum = 0
  for i = 1, n do
    for k = 1, 40 do sum = sum + gcd(i, k) end
  end
  return sum
end

local function collatz(n) --#collatz
  local longest, from = 0, 0
  for i = 1, n do
    local x, steps = i, 0
    while x ~= 1 do
      if x % 2 == 0 then x = x / 2 else x = 3 * x + 1 end
      steps = steps + 1
    end
    if steps > longest then longest, from = steps, i end
  end
  return from, longest
end

function M.fibonacci(n) --#fibonacci
  if n < 2 then return n end
  return M.fibonacci(n - 1) + M.fibonacci(n - 2)
end

-- -- Matrices ----------------------------------------------------------------

local function new_matrix(n, value) --#new_matrix
  local rows = {}
  for i = 1, n do
    local row = {}
    for k = 1, n do row[k] = value(i, k) end
    rows[i] = row
  end
  return rows
end

local function multiply(a, b) --#multiply
  local n, c = #a, {}
  for i = 1, n do
    local row, of_a = {}, a[i]
    for k = 1, n do
      local sum = 0
      for j = 1, n do sum = sum + of_a[j] * b[j][k] end
      row[k] = sum
    end
    c[i] = row
  end
  return c
end

local function transpose(a) --#transpose
  local t = {}
  for i = 1, #a do
    local row = {}
    for k = 1, #a do row[k] = a[k][i] end
    t[i] = row
  end
  return t
end

local function trace_of(a) --#trace_of
  local sum = 0
  for i = 1, #a do
    for k = 1, #a do
      if i == k then sum = sum + a[i][k] end
    end
  end
  return sum
end

function M.matrices(n) --#matrices
  local a = new_matrix(n, function(i, k) --#matrix_sum
    return i + k
  end)
  local b = new_matrix(n, function(i, k) --#matrix_difference
    return i - k
  end)
  local sum = 0
  for _ = 1, 6 do
    sum = sum + trace_of(multiply(a, transpose(b)))
  end
  return sum
end

-- -- Texts -------------------------------------------------------------------

local function tokens_of(text) --#tokens_of
  local list, pos = {}, 1
  while pos <= #text do
    local byte = text:byte(pos)
    if byte == 32 or byte == 10 then
      pos = pos + 1
    elseif byte >= 48 and byte <= 57 then
      local number = 0
      while byte and byte >= 48 and byte <= 57 do
	number = number * 10 + byte - 48
	pos = pos + 1
	byte = text:byte(pos)
      end
      list[#list + 1] = number
    else
      list[#list + 1] = byte
      pos = pos + 1
    end
  end
  return list
end

local parse_sum

local function parse_value(list, pos) --#parse_value
  local token = list[pos]
  if token == 40 then
    local value, at = parse_sum(list, pos + 1)
    return value, at + 1
  end
  return token, pos + 1
end

local function parse_product(list, pos) --#parse_product
  local value, at = parse_value(list, pos)
  while list[at] == 42 do
    local other
    other, at = parse_value(list, at + 1)
    value = value * other % 9973
  end
  return value, at
end

function parse_sum(list, pos) --#parse_sum
  local value, at = parse_product(list, pos)
  while list[at] == 43 do
    local other
    other, at = parse_product(list, at + 1)
    value = value + other
  end
  return value, at
end

function M.calculate(rounds) --#calculate
  local text = ("(1 + 2 * 3) * (4 + 5) + 17 * (8 + 9 * 11) + "):rep(60) .. "7"
  local sum = 0
  for _ = 1, rounds do
    local list = tokens_of(text)
    sum = sum + parse_sum(list, 1)
  end
  return sum
end

local function encode(value, out) --#encode
  local kind = type(value)
  if kind == "table" then
    out[#out + 1] = "{"
    for i = 1, #value do
      encode(value[i], out)
      out[#out + 1] = ","
    end
    out[#out + 1] = "}"
  else
    out[#out + 1] = tostring(value)
  end
  return out
end

local function checksum(text) --#checksum
  local a, b = 1, 0
  for i = 1, #text do
    a = (a + text:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return b * 65536 + a
end

function M.texts(rounds) --#texts
  local sum = 0
  for i = 1, rounds do
    local text = table.concat(encode({ i, { i, i + 1, { "x", i } }, { { {} }, "y" } }, {}))
    for _ = 1, 4 do sum = sum + checksum(text) end
  end
  return sum
end

-- -- Lists -------------------------------------------------------------------

local Stack = {}
Stack.__index = Stack

function Stack.new() --#stack_new
  return setmetatable({ n = 0, items = {} }, Stack)
end

function Stack:push(item) --#stack_push
  local n = self.n + 1
  self.n = n
  self.items[n] = item
end

function Stack:pop() --#stack_pop
  local n = self.n
  local item = self.items[n]
  self.items[n] = nil
  self.n = n - 1
  return item
end

function M.stacks(rounds) --#stacks
  local sum = 0
  for _ = 1, rounds do
    local stack = Stack.new()
    for i = 1, 100 do stack:push(i) end
    while stack.n > 0 do sum = sum + stack:pop() end
  end
  return sum
end

local function insertion_sort(list, is_less) --#insertion_sort
  for i = 2, #list do
    local item, k = list[i], i - 1
    while k > 0 and is_less(item, list[k]) do
      list[k + 1] = list[k]
      k = k - 1
    end
    list[k + 1] = item
  end
  return list
end

function M.sorts(rounds) --#sorts
  local seed = 42
  local function random() --#random
    seed = (seed * 16807) % 2147483647
    return seed
  end
  for _ = 1, rounds do
    local list = {}
    for i = 1, 60 do list[i] = random() end
    insertion_sort(list, function(a, b) --#ascending
      return a < b
    end)
    insertion_sort(list, function(a, b) --#descending
      return a > b
    end)
  end
  return seed
end

local function count_pairs(rounds) --#count_pairs
  local t, n = {}, 0
  for i = 1, 100 do t["key" .. i] = i end
  for _ = 1, rounds do
    for _, v in pairs(t) do n = n + v end
  end
  return n
end

-- -- All ---------------------------------------------------------------------

local function run(seconds) --#run
  local finish = os.clock() + seconds
  repeat
    sieve(20000)
    gcd_sum(700)
    collatz(1500)
    M.fibonacci(20)
    M.matrices(24)
    M.calculate(8)
    M.texts(120)
    M.stacks(90)
    M.sorts(25)
    count_pairs(300)
  until os.clock() > finish
end

run(tonumber((...)) or 0.1)
return M
