-- Coroutines: values, order, errors and states.

return function(T)
  local area, out, is = T.area, T.out, T.is

  area("coroutines", function()
    local co = coroutine.create(function(a, b)
      local c = coroutine.yield(a + b)
      local d, e = coroutine.yield(c * 2, "two")
      return d, e, "end"
    end)
    out(coroutine.status(co), coroutine.resume(co, 1, 2))
    out(coroutine.status(co), coroutine.resume(co, 10))
    out(coroutine.resume(co, "x", nil))
    out(coroutine.status(co), coroutine.resume(co))
    out(pcall(coroutine.wrap(function() error({ 1 }) end)))
    out(pcall(coroutine.wrap(function() error("text") end)))
    local inner
    local outer = coroutine.create(function()
      inner = coroutine.create(function()
	coroutine.yield(coroutine.status(inner))
	error("inside", 0)
      end)
      out(coroutine.resume(inner))
      out(coroutine.status(inner))
      coroutine.yield()
      out(coroutine.resume(inner))
      out(coroutine.resume(coroutine.running()))
      return coroutine.isyieldable and coroutine.isyieldable()
    end)
    out(coroutine.resume(outer))
    out(coroutine.resume(outer))
    out(coroutine.running(), pcall(coroutine.resume, nil))
    -- Outside of a coroutine, also while hooks of the profiler run.
    out((pcall(coroutine.wrap(function() coroutine.yield() end))))
    local wrap = coroutine.wrap(function() return 1 end)
    wrap()
    out(pcall(wrap))
    out(coroutine.resume(coroutine.create(print and select), "#", 1, 2))
  end)

  area("generators", function()
    local function range(n) return coroutine.wrap(function()
      for i = 1, n do coroutine.yield(i) end
    end) end
    local sum = 0
    for i in range(300) do sum = sum + i end
    is("range", sum, 45150)
    local function primes(n)
      local source = coroutine.wrap(function() for i = 2, n do coroutine.yield(i) end end)
      local list = {}
      while true do
	local p = source()
	if not p then return list end
	list[#list + 1] = p
	local before = source
	source = coroutine.wrap(function()
	  for x in before do if x % p ~= 0 then coroutine.yield(x) end end
	end)
      end
    end
    out(unpack(primes(60)))
    local function permute(list, n)
      if n == 0 then return coroutine.yield(table.concat(list)) end
      for i = 1, n do
	list[i], list[n] = list[n], list[i]
	permute(list, n - 1)
	list[i], list[n] = list[n], list[i]
      end
    end
    local n, last = 0, nil
    for text in coroutine.wrap(function() permute({ "a", "b", "c", "d" }, 4) end) do
      n, last = n + 1, text
    end
    out(n, last)
    -- Two that take turns, with values both ways.
    local function player(name)
      return coroutine.create(function(ball)
	while true do ball = coroutine.yield((ball * 7 + #name) % 1009) end
      end)
    end
    local a, b, ball = player("ping"), player("pong!"), 1
    for _ = 1, 200 do
      ball = select(2, coroutine.resume(a, ball))
      ball = select(2, coroutine.resume(b, ball))
    end
    out(ball)
    -- Many that live at once, and are collected half-way.
    local alive = {}
    for i = 1, 100 do
      alive[i] = coroutine.create(function() for k = 1, 3 do coroutine.yield(i * k) end end)
    end
    local all = 0
    for round = 1, 3 do
      for i = 1, 100 do all = all + select(2, coroutine.resume(alive[i])) end
      if round == 2 then collectgarbage() end
    end
    is("many", all, 30300)
  end)

  area("yield across", function()
    local function try(name, f) out(name, pcall(coroutine.wrap(f))) end
    local function yields() return coroutine.yield("y") end
    try("pcall", function() return pcall(yields) end)
    try("xpcall", function() return xpcall(yields, debug.traceback) end)
    try("metamethod", function() return setmetatable({}, { __add = yields }) + 1 end)
    try("__index", function() return setmetatable({}, { __index = yields }).x end)
    try("__lt", function() local m = { __lt = yields }
      return setmetatable({}, m) < setmetatable({}, m) end)
    try("__concat", function() return setmetatable({}, { __concat = yields }) .. "x" end)
    try("__call", function() return setmetatable({}, { __call = yields })() end)
    try("iterator", function() for x in yields do return x end end)
    try("tostring", function() return tostring(setmetatable({}, { __tostring = yields })) end)
    try("gsub", function() return ("x"):gsub("x", yields) end)
    try("sort", function() table.sort({ 1, 2 }, yields) end)
    try("load", function() return load(yields) end)
    local co = coroutine.wrap(function()
      local results = {}
      for i = 1, 30 do
	local ok, v = pcall(function()
	  local x = coroutine.yield(i)
	  if x % 3 == 0 then error("three", 0) end
	  return x
	end)
	results[#results + 1] = tostring(ok) .. tostring(v)
      end
      return table.concat(results, " ")
    end)
    local v = co()
    while type(v) == "number" do v = co(v) end
    out(v)
    local t = setmetatable({}, { __add = function(_, x) return coroutine.yield(x) end })
    local adder = coroutine.wrap(function()
      local s = 0
      for i = 1, 50 do s = s + (t + i) end
      return "sum " .. s
    end)
    v = adder()
    while type(v) == "number" do v = adder(v * 2) end
    is("metamethods that yield", v, "sum 2550")
  end)
end
