-- The collector and its finalizers, the compiler's switches, files, time.

local util = require("jit.util")

return function(T)
  local area, out, is = T.area, T.out, T.is

  area("finalizers", function()
    local order = {}
    local function tracked(i)
      local p = newproxy(true)
      getmetatable(p).__gc = function()
	-- A finalizer that calls, allocates, catches and collects.
	local t = {}
	for k = 1, 5 do t[k] = { k } end
	pcall(error, t)
	if i == 3 then collectgarbage("step") end
	order[#order + 1] = i
      end
      return p
    end
    local function make(n) for i = 1, n do tracked(i) end end
    make(6)
    local keep = tracked(7)
    collectgarbage()
    collectgarbage()
    table.sort(order)
    out(unpack(order))
    keep = nil
    collectgarbage()
    collectgarbage()
    is("after it is let go", #order, 7)
    -- In the reverse order of their creation.
    order = {}
    local anchors = {}
    for i = 1, 8 do anchors[i] = tracked(i) end
    anchors = nil
    collectgarbage()
    collectgarbage()
    out(unpack(order))
    -- Objects that come back to life, once.
    local saved = {}
    local function revive()
      local p = newproxy(true)
      getmetatable(p).__gc = function(self) saved[#saved + 1] = self end
    end
    revive()
    collectgarbage()
    collectgarbage()
    is("revived", #saved, 1)
    local p = newproxy(true)
    is("shared metatable", getmetatable(newproxy(p)) == getmetatable(p), true)
    out(pcall(newproxy, 1))
  end)

  area("garbage", function()
    -- Structures that live through many collections.
    local live, sum = {}, 0
    for i = 1, 400 do
      local node = { i = i, text = ("n%d"):format(i), link = live[i - 1] }
      live[i] = node
      if i % 3 == 0 then live[i - 2] = false end
      local junk = {}
      for k = 1, 10 do junk[k] = { k, ("%d"):format(i * k), function() return node end } end
      sum = sum + junk[7][3]().i
      if i % 50 == 0 then collectgarbage("step", 10) end
    end
    is("junk", sum, 80200)
    local good = true
    for i, node in ipairs(live) do
      good = good and (not node or node.i == i and node.text == "n" .. i)
    end
    is("live", good, true)
    out(type(collectgarbage("count")), collectgarbage("stop"), collectgarbage("restart"))
    out(pcall(collectgarbage, "no such option"))
    local text = {}
    for i = 1, 300 do text[i] = ("x"):rep(i % 40) .. i end
    collectgarbage()
    local length = 0
    for i = 1, 300 do length = length + #text[i] end
    is("strings", length, 6462)
  end)

  area("compiler", function()
    -- The compiler's switches, while it records and runs code.
    local function work(n)
      local x = 0
      for i = 1, n do x = (x * 5 + i) % 10007 end
      return x
    end
    local want = work(400)
    local same = true
    local on = jit.status()
    for i = 1, 40 do
      if i % 8 == 0 then jit.flush() end
      if i % 5 == 0 then jit.off() elseif on then jit.on() end
      if i % 7 == 0 then jit.off(work) elseif i % 7 == 1 then jit.on(work) end
      same = same and work(400) == want
    end
    if on then jit.on() else jit.off() end
    jit.on(work)
    is("same results", same, true)
    is("as it was", jit.status() == on, true)
    local fresh = loadstring([[return function(n)
      local t = {}
      for i = 1, n do t[i] = (t[i - 1] or 0) + i % 3 end
      return t[n]
    end]])
    local total = 0
    for i = 1, 25 do total = total + fresh()(100 + i) end
    is("fresh functions", total, 2834)
    local f = function(a, b, ...) local c = a; return c + b end
    local info = util.funcinfo(f)
    out(info.params, info.isvararg, info.stackslots, info.upvalues, info.bytecodes, info.gcconsts)
    out(util.funck(fresh, -1) ~= nil, util.funcuvname(f, 0), util.traceinfo(60000))
    out(jit.os, jit.arch, jit.version_num >= 20100)
    out(pcall(jit.off, 1))
    out(pcall(require("jit.opt").start, "nonsense"))
  end)

  area("files", function()
    local name = os.tmpname()
    local f = assert(io.open(name, "w+b"))
    for i = 1, 500 do f:write(i, " line ", i * 0.5, "\n") end
    out(f:seek("cur"), f:seek("set", 3), f:read("*l"), f:seek("end"))
    f:seek("set")
    out(f:read("*n", "*l", 5, "*l"), f:read(0))
    f:close()
    out(pcall(f.read, f), io.type(f), tostring(f))
    local n, length = 0, 0
    for line in io.lines(name) do n, length = n + 1, length + #line end
    out(n, length)
    f = io.open(name, "a")
    f:setvbuf("full", 64)
    for _ = 1, 100 do f:write("appended") end
    f:close()
    f = io.open(name)
    is("all", #f:read("*a"), length + n + 800)
    is("end", f:read("*l"), nil)
    f:close()
    out(os.remove(name), io.open(name) == nil)
    out(io.open("/nonexistent/file"))
    out(pcall(io.lines, "/nonexistent/file"))
    out(os.rename("/nonexistent/a", "/nonexistent/b"))
    out(loadfile("/nonexistent/file.lua"))
    out(pcall(dofile, "/nonexistent/file.lua"))
    out(os.date("!%Y-%m-%d %H:%M:%S", 86400 * 365), os.date("!*t", 0).year)
    out(os.time({ year = 2020, month = 1, day = 2, hour = 3 }) -
	os.time({ year = 2020, month = 1, day = 1, hour = 3 }))
    out(os.getenv("NO_SUCH_VARIABLE"), os.difftime(5, 3), os.setlocale("C"))
    local before = os.clock()
    out(os.clock() >= before)
  end)

  area("processes", function()
    -- Starts programs and waits for them; no signal cuts a read short.
    local f = assert(io.popen("printf 'a\\nb\\n'; sleep 0.01; printf c"))
    is("output", f:read("*a"), "a\nb\nc")
    out(f:close())
    f = assert(io.popen("cat >/dev/null", "w"))
    for i = 1, 2000 do f:write("a line ", i, "\n") end
    out(f:close())
    out(os.execute("exit 3"))
  end)
end
