-- Retained sizes of heap snapshots: what the VM frees when the object goes. Weak references hold nothing, and
-- garbage stands apart.

local dominators = require("sysprof.model.dominators")
local heapfile = require("sysprof.read.heapfile")
local naive = require("naive_heap")
local t = require("tools_test")

local FILE = "retained.heap"
jit.off(true, true)

-- The table of strings keeps its size: few of many go.
local strings = {}
for i = 1, 3000 do strings[i] = "kept string " .. i end

local ffi = require("ffi")
local held = {}		-- What is planted.
local shared = { "held by others, too" }
local cache = setmetatable({}, { __mode = "k" })
-- The cache, and the VM's table of finalizers, keep their sizes, too.
local cdata_kept = {}
for i = 1, 140 do
  cdata_kept[i], cache[i] = ffi.gc(ffi.new("char[1]"), function() end), true
end

local plants = {
  function() return { 1, 2, 3 } end,
  function() return { {}, { {} }, shared } end,
  function()
    local list = {}
    for i = 1, 100 do list[i] = { name = "planted " .. i, next = list[i - 1] } end
    return list
  end,
  function()
    local first = {}
    local last = first
    for i = 1, 5000 do
      last.next = { before = last, i }
      last = last.next
    end
    return first
  end,
  function()
    local sessions = { ("s"):rep(1000) }
    return { function() return sessions end, function() return sessions end }
  end,
  function()
    local co = coroutine.create(function(a)
      local b = { a, {} }
      coroutine.yield(b)
    end)
    coroutine.resume(co, { "argument of it" })
    return co
  end,
  function() return setmetatable({ {} }, { __mode = "v", __index = { {} } }) end,
  function()
    local key = {}
    return { key, setmetatable({ [key] = { "a value of a weak key" }, word = { 1 } }, { __mode = "k" }) }
  end,
  function()	-- Another table holds the cache.
    local key = { "key" }
    cache[key], cache[cache] = { { "a value" }, function() return {} end }, { "of the cache itself" }
    cache[cache[key]] = { "a value whose key is a value" }
    return { key }
  end,
  function()	-- Values that refer to their keys stay.
    local key, list = { "key" }, { { "far" } }
    list[1].back = key
    cache[key], cache[list] = list, { "a value of a key that stays" }
    return { key }
  end,
  function()
    local cdata, name = {}, "finalizer of cdata"
    for i = 1, 50 do
      cdata[i] = ffi.gc(ffi.new("char[100]"), function() return name, i end)
    end
    return cdata
  end,
  function()	-- A finalizer that refers to its cdata keeps it.
    local cdata = ffi.new("char[100]")
    ffi.gc(cdata, function() return cdata end)
    return { cdata }
  end,
  function() return loadstring("local t = { 'a constant' } return function() return t, 'another constant' end")() end,
  function() return newproxy(true) end,
  function() return ffi.new("char[1000]") end,
  function()
    local a, b = {}, {}
    a[1], b[1] = b, a
    return { a, b, { a }, { b } }
  end,
}

-- The collector halves the stack each time, until it fits.
local function count()
  local last, now
  repeat
    last = now
    collectgarbage()
    now = collectgarbage("count") * 1024
  until now == last
  return now
end

for number, plant in ipairs(plants) do
  held[1] = plant()
  local address = naive.address(held[1])
  count()
  t.ok(misc.memprof.snapshot(FILE))
  local before = count()
  held[1] = nil
  local freed = before - count()
  local snap = assert(heapfile.read(FILE))
  local dom = dominators.of(snap.objects + 1, snap.first, snap.to, snap.size)
  local i = snap.find(address / 8)
  t.ok(i ~= 0 and dom.number[i] ~= 0, "the plant is reached: " .. number)
  t.equal(dom.retained[i], freed, "retained bytes of plant " .. number)
end

-- Weak references alone make an object garbage.
local weak = setmetatable({}, { __mode = "kv" })
collectgarbage("stop")
local function fill()
  weak[1] = {}
  return naive.address(weak[1])
end
-- Far above, so that no slot of the stack keeps it.
local function deep(n)
  if n == 0 then return fill() end
  local result = deep(n - 1)
  return result
end
local address = deep(20)
t.ok(misc.memprof.snapshot(FILE))
local snap = assert(heapfile.read(FILE))
local dom = dominators.of(snap.objects + 1, snap.first, snap.to, snap.size)
local i = snap.find(address / 8)
t.ok(i ~= 0 and dom.number[i] == 0, "an object in a weak table is garbage")
collectgarbage("restart")

-- Dominators against their definition: without the dominator, no way leads to the node.
math.randomseed(1)
for _ = 1, 300 do
  local n = math.random(1, 12)
  local first, to, size, edges = ffi.new("uint32_t[?]", n + 1), ffi.new("uint32_t[400]"), ffi.new("double[?]", n), 0
  for v = 0, n - 1 do
    first[v], size[v] = edges, math.random(1, 9)
    for _ = 1, math.random(0, 3) do to[edges], edges = math.random(0, n - 1), edges + 1 end
  end
  first[n] = edges
  local function reached(but)
    local seen, stack = { [0] = but ~= 0 }, { but ~= 0 and 0 or nil }
    while #stack > 0 do
      local v = table.remove(stack)
      for e = first[v], first[v + 1] - 1 do
	local w = to[e]
	if w ~= but and not seen[w] then
	  seen[w] = true
	  stack[#stack + 1] = w
	end
      end
    end
    return seen
  end
  local all, found = reached(-1), dominators.of(n, first, to, size)
  for v = 0, n - 1 do
    local sum, without = 0, reached(v)
    for w = 0, n - 1 do
      if all[w] and not without[w] then sum = sum + size[w] end
    end
    t.equal(found.retained[v], all[v] and sum or 0, "retained size in a random graph")
  end
end

-- Weak keys in random graphs: all that collections keep for ever is reached, and nothing that the next one frees.
local ephemerons = require("sysprof.model.ephemerons")
for _ = 1, 500 do
  local n, count = math.random(2, 12), math.random(0, 8)
  local list, pairs_of = {}, { count = count }
  for _, name in ipairs { "holder", "key", "value" } do
    pairs_of[name] = ffi.new("uint32_t[?]", count + 1)
    for k = 1, count do pairs_of[name][k] = math.random(0, n - 1) end
  end
  local first, to, edges = ffi.new("uint32_t[?]", n + 1), ffi.new("uint32_t[100]"), 0
  for v = 0, n - 1 do
    first[v], list[v] = edges, {}
    for i = 1, math.random(0, 2) do
      list[v][i] = math.random(0, n - 1)
      to[edges], edges = list[v][i], edges + 1
    end
  end
  first[n] = edges
  local function mark(cleared)
    local seen, stack = { [0] = true }, { 0 }
    local function visit(v)
      if not seen[v] then
	seen[v] = true
	stack[#stack + 1] = v
      end
    end
    while #stack > 0 do
      local v = table.remove(stack)
      for _, w in ipairs(list[v]) do visit(w) end
      for k = 1, count do
	if pairs_of.holder[k] == v and not cleared[k] then visit(pairs_of.value[k]) end
      end
    end
    return seen
  end
  local cleared, next_one, last, is_same = {}, mark({}), nil, nil
  repeat
    last, is_same = mark(cleared), true
    for k = 1, count do
      if not last[pairs_of.key[k]] and not cleared[k] then cleared[k], is_same = true, false end
    end
  until is_same
  ephemerons.add(n, first, to, pairs_of)
  local size = ffi.new("double[?]", n, 1)
  local number = dominators.of(n, first, to, size).number
  for v = 0, n - 1 do
    t.ok(number[v] ~= 0 or not last[v], "what the collector keeps is reached")
    t.ok(number[v] == 0 or next_one[v], "what the next collection frees is not reached")
    for _, w in ipairs(list[v]) do
      local has = false
      for e = first[v], first[v + 1] - 1 do has = has or to[e] == w end
      t.ok(has, "a strong edge stays")
    end
  end
end

t.equal(#strings + #cdata_kept, 3140, "other objects")
os.remove(FILE)
t.finish()
