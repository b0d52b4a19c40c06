-- Functions: closures, varargs, tail calls, recursion and its limits.

return function(T)
  local area, out, is = T.area, T.out, T.is

  area("closures", function()
    local function counter(step)
      local n = 0
      return function() n = n + step; return n end, function() return n end, function(x) n = x end
    end
    local add, get, set = counter(3)
    for _ = 1, 150 do add() end
    is("shared", get(), 450)
    set(7)
    is("written", add(), 10)
    local list = {}
    for i = 1, 100 do
      local j = i * 2
      list[i] = function(x) j = j + x; return i + j end
    end
    local sum = 0
    for round = 1, 3 do for i = 1, 100 do sum = sum + list[i](round) end end
    out(sum)
    -- Upvalues of an upvalue, closed in the middle.
    local function outer(a)
      local b = a
      local function middle()
	local c = b
	return function() a, b, c = a + 1, b + a, c + b; return a, b, c end
      end
      return middle()
    end
    local f = outer(1)
    for _ = 1, 20 do f() end
    out(f())
    out(debug.getupvalue(f, 1), debug.setupvalue(f, 1, 100))
    out(f())
    local function fix(g) return (function(x) return x(x) end)(function(x)
      return g(function(...) return x(x)(...) end)
    end) end
    is("fixpoint", fix(function(self) return function(n)
      return n == 0 and 1 or n * self(n - 1)
    end end)(20), 2432902008176640000)
    local t = { n = 0 }
    function t:add(x) self.n = self.n + x; return self end
    for i = 1, 120 do t:add(i):add(-1) end
    is("methods", t.n, 7140)
  end)

  area("varargs", function()
    local function count(...) return select("#", ...), ... end
    out(count())
    out(count(nil, nil))
    out((count(1, 2, 3)))
    out(count(count(1, nil)))
    out(select(-1, 1, 2, 3), select(2, "a", "b", "c"))
    out(pcall(select, 0))
    local function sum(...)
      local s = 0
      for i = 1, select("#", ...) do s = s + (select(i, ...) or 0) end
      return s
    end
    local total = 0
    for i = 1, 100 do total = total + sum(i, nil, i + 1, unpack({ i, i, i }, 1, i % 4)) end
    out(total)
    local function pass(n, ...) if n == 0 then return ... end return pass(n - 1, ...) end
    out(pass(100, 1, nil, 3))
    local function rotate(n, x, ...) if n == 0 then return x, ... end return rotate(n - 1, ..., x) end
    out(rotate(4, 1, 2, 3))
    local t = { count(1, 2), count(3, 4) }
    out(#t, unpack(t))
    local many = {}
    for i = 1, 200 do many[i] = i end
    is("200 arguments", sum(unpack(many)), 20100)
    is("of max", math.max(unpack(many)), 200)
    is("of a string", #string.char(unpack(many)), 200)
    out(pcall(unpack, {}, 1, 1e8))
    out((function(...) local a, b = ..., 5; return a, b end)(1, 2))
  end)

  area("recursion", function()
    local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
    is("fib", fib(17), 1597)
    local function ack(m, n)
      if m == 0 then return n + 1 end
      if n == 0 then return ack(m - 1, 1) end
      return ack(m - 1, ack(m, n - 1))
    end
    is("ackermann", ack(2, 20), 43)
    local function even(n) if n == 0 then return true end return (function(k)
      if k == 0 then return false end
      return even(k - 1)
    end)(n - 1) end
    is("tail calls", even(20000), true)
    local function depth(n) if n == 0 then return 0 end return 1 + depth(n - 1) end
    is("deep", depth(5000), 5000)
    local co = coroutine.wrap(function() return depth(3000) end)
    is("deep in a coroutine", co(), 3000)
    local moves = 0
    local function hanoi(n, a, b, c)
      if n == 0 then return end
      hanoi(n - 1, a, c, b)
      moves = moves + 1
      hanoi(n - 1, c, b, a)
    end
    hanoi(10, "a", "b", "c")
    is("hanoi", moves, 1023)
    local function queens(n)
      local found, columns, up, down = 0, {}, {}, {}
      local function place(row)
	if row > n then found = found + 1; return end
	for c = 1, n do
	  if not (columns[c] or up[row + c] or down[row - c]) then
	    columns[c], up[row + c], down[row - c] = true, true, true
	    place(row + 1)
	    columns[c], up[row + c], down[row - c] = nil, nil, nil
	  end
	end
      end
      place(1)
      return found
    end
    is("queens", queens(6), 4)
  end)

  area("stack overflow", function()
    local function endless(n) return 1 + endless(n + 1) end
    -- The place of the error depends on the compiled code.
    local function text(ok, message) return ok, tostring(message):match("stack overflow") end
    out(text(pcall(endless, 1)))
    out(text(pcall(string.gsub, ("x"):rep(3), "x", function(c) return endless(c:byte()) end)))
    local t = setmetatable({}, {})
    getmetatable(t).__index = function(_, k) return t[k + 1] end
    local ok, message = pcall(function() return t[1] end)
    out(text(ok, message))
    local co = coroutine.create(endless)
    out(text(coroutine.resume(co, 1)))
    is("dead", coroutine.status(co), "dead")
    -- Coroutines in each other have a C stack each.
    local function nest(n)
      if n == 0 then error("innermost", 0) end
      return coroutine.wrap(function() return nest(n - 1) end)()
    end
    out(pcall(nest, 100))
    -- The handler may or may not have room to run.
    out((xpcall(endless, function(m) return m end, 1)))
    -- The stack is whole again.
    local function depth(n) if n == 0 then return 0 end return 1 + depth(n - 1) end
    is("deep again", depth(5000), 5000)
  end)
end
