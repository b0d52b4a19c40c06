-- Heap snapshots of random heaps: each edge is that of a walk in Lua, sums of sizes are the VM's total, and the
-- snapshot changes nothing.

local heapfile = require("sysprof.read.heapfile")
local heapgrammar = require("sysprof.base.heapgrammar")
local naive = require("naive_heap")
local ffi = require("ffi")
local t = require("tools_test")

local HEAPS = tonumber(os.getenv("SYSPROF_STRESS_HEAPS") or 40)
local FILE = "edges.heap"
local L = heapfile.LABELS

jit.off(true, true)

-- -- Random heaps ----------------------------------------------------------

local random = math.random

-- Values of any type, objects among them.
local function value(list)
  local n = random(9)
  if n == 1 then return random(1000) end
  if n == 2 then return random() end
  if n == 3 then return random(2) == 1 end
  if n == 4 then return "text " .. random(200) end
  if n == 5 then return ("long"):rep(random(200)) end
  return list[random(#list)]
end

local makers = {
  function(list)
    local new = {}
    for i = 1, random(0, 20) do new[i] = value(list) end
    return new
  end,
  function(list)
    local new = {}
    for _ = 1, random(0, 20) do
      local key = value(list)
      new[key] = value(list)
    end
    return new
  end,
  function(list)
    local modes = { "k", "v", "kv", "x", 1 }
    return setmetatable({ value(list), name = value(list), [value(list)] = value(list) },
			{ __mode = modes[random(#modes)], __index = list[1] })
  end,
  function(list)
    local first, second = value(list), value(list)
    return function(...)
      first = ...
      return first, second
    end
  end,
  function(list)
    local source = "local a, b = ... return function() return a, b, 'constant', { 1, 'x' } end"
    local f = loadstring(source, "=chunk " .. random(9))
    return f(value(list), value(list))
  end,
  function(list)
    local co = coroutine.create(function(argument, ...)
      local inner = { argument, value(list) }
      local function deeper(n, what)
	if n == 0 then coroutine.yield(what, inner) else deeper(n - 1, what) end
	return what
      end
      return deeper(random(0, 5), value(list), ...)
    end)
    if random(3) > 1 then coroutine.resume(co, value(list), value(list), value(list)) end
    if random(4) == 1 then coroutine.resume(co) end
    return co
  end,
  function(list)
    local proxy = newproxy(true)
    getmetatable(proxy).__index = value(list)
    return proxy
  end,
  function() return ffi.new("char[?]", random(100)) end,
  function() return ffi.new("struct { int a; double b[3]; }") end,
  function() return require("string.buffer").new():put(("b"):rep(random(300))) end,
  function(list) return string.gmatch("a b " .. tostring(value(list)), "%w") end,
  function() return setfenv(function() return a_global end, { a_global = true }) end,	-- luacheck: ignore
}

local has_buffer = pcall(require, "string.buffer")

-- Returns a list of objects.
local function new_heap(n)
  local list = { {} }
  while #list < n do
    local i = random(#makers)
    if i ~= 10 or has_buffer then list[#list + 1] = makers[i](list) end
    local a, b = list[random(#list)], list[random(#list)]
    if type(a) == "table" then a[random(30)] = b end
  end
  return list
end

-- -- Edges of a snapshot as the oracle writes them -------------------------

local function key_text(snap, kind, key)
  local G = heapgrammar
  if kind == G.HPK_OBJ then return ("%x"):format(key * 8) end
  if kind == G.HPK_TRUE or kind == G.HPK_FALSE then return tostring(kind == G.HPK_TRUE) end
  return ("%.17g"):format(key)
end

local function edges_of(snap, i)
  local list = {}
  local names = snap.tag[i] == heapgrammar.HPF_FUNC and heapfile.proto_of(snap, i)
  names = names and names ~= 0 and heapfile.proto(snap, names).upvalues
  heapfile.edges(snap, i, function(to, _, label, a, b)
    local what
    if label == L.METATABLE then what = "metatable"
    elseif label == L.ENVIRONMENT then what = "environment"
    elseif label == L.KEY then what = "key"
    elseif label == L.INDEX then what = "field " .. a
    elseif label == L.FIELD then what = "field " .. key_text(snap, a, b)
    elseif label == L.UPVALUE then what = names and ("upvalue %d %s"):format(a + 1, names[a + 1]) or "upvalue " .. a + 1
    elseif label == L.SLOT and b ~= "" then what = "local " .. b end
    if what then list[#list + 1] = ("%s > %x"):format(what, snap.address[to] * 8) end
  end)
  table.sort(list)
  return list
end

local function has_all(list, part)
  local at = 1
  for _, edge in ipairs(part) do
    while list[at] and list[at] < edge do at = at + 1 end
    if list[at] ~= edge then return false end
    at = at + 1
  end
  return true
end

-- -- Comparison ------------------------------------------------------------

local checked = 0

local function check(list, snap)
  for _, object in ipairs(list) do
    local address = naive.address(object)
    local i = snap.find(address / 8)
    t.ok(i ~= 0, ("%s: it is there"):format(tostring(object)))
    local got, want = edges_of(snap, i), naive.edges(object)
    local got_text, want_text = table.concat(got, "\n"), table.concat(want, "\n")
    local is_same = got_text == want_text or type(object) == "thread" and has_all(got, want)
    t.ok(is_same, ("%s: edges:\n%s\nexpected:\n%s"):format(tostring(object), got_text, want_text))
    checked = checked + #want
  end
end

local function sum_of(snap)
  local sum = 0
  for i = 1, snap.objects do sum = sum + snap.size[i] end
  for part, bytes in pairs(snap.parts) do
    if part ~= heapgrammar.HPP_MCODE then sum = sum + bytes end
  end
  return sum
end

for seed = 1, HEAPS do
  collectgarbage()
  math.randomseed(seed)
  local list = new_heap(random(20, 150))
  collectgarbage("stop")
  if seed % 4 == 0 then collectgarbage("step", seed) collectgarbage("stop") end	-- In the middle of a cycle.
  t.ok(misc.memprof.snapshot(FILE))
  local snap, why = heapfile.read(FILE)
  t.ok(snap, why)
  t.ok(not snap.is_damaged and not snap.is_cut, "the snapshot is whole")
  t.equal(sum_of(snap), snap.total, "sum of sizes")
  check(list, snap)
  collectgarbage("restart")
end
t.ok(checked > HEAPS * 100, "edges are checked: " .. checked)
os.remove(FILE)
t.finish()
