-- Tables: growth, holes, order, weak tables, sorting; metamethods.

return function(T)
  local area, out, is = T.area, T.out, T.is

  local function sorted(t)
    local keys = {}
    for k in pairs(t) do keys[#keys + 1] = k end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    return keys
  end

  area("tables", function()
    local t = {}
    for i = 1, 300 do t[i] = i end
    for i = 300, 101, -1 do t[i] = nil end
    is("length", #t, 100)
    for i = 1, 100 do t["k" .. i] = i end
    for i = 1, 100, 2 do t["k" .. i] = nil end
    local n, sum = 0, 0
    for k, v in pairs(t) do
      n = n + 1
      if type(k) == "string" then sum = sum + v end
    end
    out(n, sum)
    -- A traversal may clear and set fields.
    for k in pairs(t) do t[k] = nil end
    is("empty", next(t), nil)
    out(pcall(next, {}, "no such key"))
    out(pcall(function() t[nil] = 1 end))
    out(pcall(function() t[0 / 0] = 1 end))
    is("nan is no key", t[0 / 0], nil)
    is("-0 is 0", (function() local u = {}; u[0] = "x"; return u[-0] end)(), "x")
    is("2^53", (function() local u = {}; u[2 ^ 53] = 1; return u[2 ^ 53] end)(), 1)
    local list = { 1, 2, 3, 4, 5 }
    table.insert(list, 3, "in")
    is("remove", table.remove(list, 1), 1)
    table.insert(list, "last")
    out(unpack(list))
    out(pcall(table.insert, list, 1, 2, 3))
    out(table.remove({}), #list, select("#", unpack({}, 1, 3)))
    out(table.maxn({ 1, 2, [10] = 3 }), unpack(sorted({ c = 1, a = 2, [1] = 3 })))
    -- A queue and a matrix.
    local first, last, queue = 1, 0, {}
    for i = 1, 400 do
      last = last + 1
      queue[last] = i
      if i % 3 ~= 0 then queue[first] = nil; first = first + 1 end
    end
    out(first, last, queue[first], queue[last])
    local m = {}
    for i = 1, 20 do
      m[i] = {}
      for j = 1, 20 do m[i][j] = (i * j) % 7 end
    end
    local trace = 0
    for i = 1, 20 do for k = 1, 20 do trace = trace + m[i][k] * m[k][i] end end
    out(trace)
    local ok, new = pcall(require, "table.new")
    local clear = ok and require("table.clear")
    if ok then
      local big = new(100, 10)
      for i = 1, 100 do big[i] = i end
      clear(big)
      out(#big, next(big))
    end
  end)

  area("weak tables", function()
    local keys = setmetatable({}, { __mode = "k" })
    local values = setmetatable({}, { __mode = "v" })
    local both = setmetatable({}, { __mode = "kv" })
    local kept = {}
    for i = 1, 60 do
      local object = { i }
      keys[object], values[i], both[object] = i, object, object
      if i % 4 == 0 then kept[#kept + 1] = object end
      values["s" .. i] = "string" .. i
    end
    -- A register may still hold the last one.
    for _ = 1, 4 do kept[#kept] = { kept[#kept] }; kept[#kept] = kept[#kept][1] end
    collectgarbage()
    collectgarbage()
    local n, sum, live, text = 0, 0, 0, 0
    for _, v in pairs(keys) do n, sum = n + 1, sum + v end
    for k in pairs(values) do
      if type(k) == "number" then live = live + 1 else text = text + 1 end
    end
    out(n >= #kept and n <= #kept + 2, live >= #kept and live <= #kept + 2, text)
    local missing = 0
    for _, object in ipairs(kept) do
      if keys[object] ~= object[1] or values[object[1]] ~= object then missing = missing + 1 end
    end
    is("kept objects that are gone", missing, 0)
    out(sum >= 480)
  end)

  area("sort", function()
    local seed = 7
    local function random(n) seed = seed * 16807 % 2147483647; return seed % n end
    local list = {}
    for i = 1, 250 do list[i] = { key = random(40), at = i } end
    local calls = 0
    table.sort(list, function(a, b)
      calls = calls + 1
      if a.key ~= b.key then return a.key < b.key end
      return a.at < b.at
    end)
    local good = true
    for i = 2, #list do
      local a, b = list[i - 1], list[i]
      good = good and (a.key < b.key or a.key == b.key and a.at < b.at)
    end
    is("sorted", good, true)
    out(calls)
    local words = {}
    for i = 1, 60 do words[i] = ("w%d"):format(random(1000)) end
    table.sort(words)
    out(words[1], words[30], words[60])
    out(pcall(table.sort, { 3, "x", 1 }))
    out(pcall(table.sort, { 1, 2, 3, 4, 5 }, function() return true end))
    local left = 50
    out(pcall(table.sort, list, function(a, b)
      left = left - 1
      if left == 0 then error({}) end
      return a.at < b.at
    end))
    out(pcall(coroutine.wrap(function()
      table.sort({ 2, 1, 3 }, function(a, b) coroutine.yield(); return a < b end)
    end)))
  end)

  area("metamethods", function()
    local calls = {}
    local M = {}
    local function make(x) return setmetatable({ x = x }, M) end
    local function value(v) return type(v) == "table" and rawget(v, "x") or v end
    for name, f in pairs({
      add = function(a, b) return a + b end, sub = function(a, b) return a - b end,
      mul = function(a, b) return a * b end, div = function(a, b) return a / b end,
      mod = function(a, b) return a % b end, pow = function(a, b) return a ^ b end,
    }) do
      M["__" .. name] = function(a, b)
	calls[name] = (calls[name] or 0) + 1
	return make(f(value(a), value(b)))
      end
    end
    M.__unm = function(a) return make(-a.x) end
    M.__len = function(a) return a.x end
    M.__concat = function(a, b) return value(a) .. "~" .. value(b) end
    M.__eq = function(a, b) return a.x == b.x end
    M.__lt = function(a, b) return value(a) < value(b) end
    M.__le = function(a, b) return value(a) <= value(b) end
    M.__call = function(self, ...) return self.x, select("#", ...), ... end
    M.__tostring = function(a) return "M(" .. a.x .. ")" end
    M.__index = function(_, k) return k == "none" and nil or k .. "?" end
    M.__newindex = function(t, k, v) rawset(t, k, v .. "!") end
    local v = make(1)
    for i = 1, 150 do
      v = (v + i) * 2 - make(3)
      v = 1000 - v % 997
      v = -(-v / 2)
      v.last = i
    end
    out(v.x, v.last, calls.add, calls.sub, calls.mul, calls.mod, calls.div)
    out(v.unknown, v.none, v .. "s", "s" .. v, v .. v)
    out(tostring(make(5)), make(2) == make(2), make(1) ~= make(2), make(1) < make(2),
	make(2) <= make(1), make(3) > make(2), (make(2) ^ 3).x)
    out(make(7)(nil, "b"))
    out(pcall(function() return make(1) < 2, {} < {} end))
    out(pcall(function() return {} + 1 end))
    out(pcall(function() return {} .. "x" end))
    out(pcall(function() local a = 5; a() end))
    out(pcall(function() return #5 end))
    -- Chains, proxies, and a class with inheritance.
    local chain = {}
    for _ = 1, 30 do chain = setmetatable({}, { __index = chain }) end
    is("nothing at the end", chain.x, nil)
    local loop = {}
    setmetatable(loop, { __index = loop, __newindex = loop })
    out(pcall(function() return loop.x end))
    out(pcall(function() loop.x = 1 end))
    local log, real = {}, {}
    local proxy = setmetatable({}, {
      __index = function(_, k) log[#log + 1] = "get " .. k; return real[k] end,
      __newindex = function(_, k, x) log[#log + 1] = "set " .. k; real[k] = x end,
    })
    for i = 1, 3 do proxy.n = (proxy.n or 0) + i end
    out(proxy.n, table.concat(log, " "))
    local mt = setmetatable({}, { __metatable = "locked" })
    out(getmetatable(mt), pcall(setmetatable, mt, {}))
    is("rawequal", rawequal(make(1), make(1)), false)
    is("rawget", rawget(make(1), "y"), nil)
    is("ipairs", (function() local n = 0; for i in ipairs({ 1, 2, nil, 4 }) do n = i end return n end)(), 2)
  end)
end
