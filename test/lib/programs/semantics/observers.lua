-- Observers of a program: debug hooks, events of the VM, dumps of bytecode. They
-- must see the same.

local bc = require("jit.bc")
local util = require("jit.util")

return function(T)
  local area, out, is = T.area, T.out, T.is

  -- Runs f interpreted: hooks do not see compiled code.
  local function interpreted(f)
    local on = jit.status()
    jit.off()
    local ok, message = pcall(f)
    debug.sethook()
    if on then jit.on() end
    if not ok then error(message, 0) end
  end

  local function workload(n)
    local t, s = {}, 0
    for i = 1, n do
      t[i] = i * 2
      if i % 3 == 0 then
	s = s + #tostring(t[i])
      else
	s = s + math.max(t[i], 5)
      end
    end
    return s
  end

  area("hooks", function()
    interpreted(function()
      for _, step in ipairs({ 1, 7, 100 }) do
	local n, want = 0, workload(100)
	debug.sethook(function() n = n + 1 end, "", step)
	local got = workload(100)
	debug.sethook()
	is("result", got, want)
	out("counted", step, n)
      end
      local lines, first = {}, debug.getinfo(workload, "S").linedefined
      debug.sethook(function(_, line) lines[#lines + 1] = line - first end, "l")
      workload(7)
      debug.sethook()
      out("lines", table.concat(lines, " "))
      local calls = {}
      debug.sethook(function(event)
	calls[#calls + 1] = event .. ":" .. tostring(debug.getinfo(2, "n").name)
      end, "cr")
      workload(4)
      pcall(error, "x")
      coroutine.wrap(function() coroutine.yield(1) end)()
      debug.sethook()
      out("calls", table.concat(calls, " "))
      local all = { call = 0, ["return"] = 0, ["tail return"] = 0, line = 0, count = 0 }
      debug.sethook(function(event) all[event] = all[event] + 1 end, "crl", 3)
      local function tail(n) if n == 0 then return 0 end return tail(n - 1) end
      tail(30)
      workload(20)
      debug.sethook()
      out("all", all.call, all["return"], all["tail return"], all.line, all.count)
    end)
  end)

  area("hooks that do more", function()
    interpreted(function()
      -- Throws, in the middle of work.
      local n = 0
      local function stop() n = n + 1; if n == 40 then error("enough", 0) end end
      debug.sethook(stop, "", 5)
      local result = { pcall(workload, 1000) }
      debug.sethook()
      out(n, unpack(result))
      out(debug.gethook())
      -- Allocates, collects, runs finalizers, resumes coroutines, sets itself again.
      local finalized, hooks = 0, 0
      local function hook()
	hooks = hooks + 1
	local p = newproxy(true)
	getmetatable(p).__gc = function() finalized = finalized + 1 end
	p = nil
	if hooks % 20 == 0 then collectgarbage() end
	coroutine.wrap(function() coroutine.yield(workload(3)) end)()
	if hooks == 50 then debug.sethook(function() hooks = hooks + 1000 end, "", 50) end
      end
      debug.sethook(hook, "", 10)
      local got = workload(300)
      debug.sethook()
      out(got)
      collectgarbage()
      collectgarbage()
      out(hooks, finalized >= 49)
      -- LuaJIT has one hook for all coroutines, so the hook sees each.
      local seen = 0
      debug.sethook(function() seen = seen + 1 end, "l")
      local co = coroutine.wrap(function()
	for i = 1, 10 do
	  coroutine.yield(i)
	end
      end)
      for _ = 1, 10 do
	co()
      end
      debug.sethook()
      out("in coroutines", seen)
      -- In finalizers and metamethods.
      local events = 0
      debug.sethook(function() events = events + 1 end, "c")
      local t = setmetatable({}, { __index = function(_, k) return k end,
				   __add = function(_, x) return x end })
      local s = 0
      for i = 1, 20 do s = s + t[i] + (t + i) end
      debug.sethook()
      out("of metamethods", s, events)
    end)
  end)

  area("events", function()
    -- Prototypes from the parser, in order.
    local seen = {}
    local function on_bytecode(f)
      seen[#seen + 1] = util.funcinfo(f).linedefined
    end
    jit.attach(on_bytecode, "bc")
    local f = loadstring("local a = 1\nlocal function b()\nreturn function() end\nend\nreturn b")
    jit.attach(on_bytecode)
    out("bc", unpack(seen))
    f()
    -- Traces: each trace that begins ends once; LuaJIT drops a handler that throws.
    local begun, ended, bad = 0, 0, 0
    local function on_trace(what)
      if what == "start" then
	if begun ~= ended then bad = bad + 1 end
	begun = begun + 1
      elseif what == "stop" or what == "abort" then
	ended = ended + 1
      elseif what == "flush" then
	ended = begun
      end
    end
    local recorded = 0
    local function on_record() recorded = recorded + 1 end
    jit.attach(on_trace, "trace")
    jit.attach(on_record, "record")
    local total = 0
    for k = 1, 20 do
      local g = loadstring("local n = 0; for i = 1, 100 do n = n + i % " .. k .. " end return n")
      total = total + g()
    end
    jit.attach(on_record)
    jit.attach(on_trace)
    is("traces", bad, 0)
    out(total, begun == ended, not jit.status() or recorded > 0)
    local exits = 0
    local function on_exit() exits = exits + 1 end
    jit.attach(on_exit, "texit")
    local sum = 0
    for i = 1, 300 do
      if i % 10 == 0 then sum = sum - 1 else sum = sum + (i % 2 == 0 and i or 0.5) end
    end
    jit.attach(on_exit)
    out(sum, exits >= 0)
    out(pcall(jit.attach, 1))
  end)

  area("bytecode listings", function()
    local f = loadstring([[
      local t, n = ..., 0
      for k, v in pairs(t) do n = n + #k * v end
      for i = 1, 10 do t[i] = function() return n, i end end
      return n > 5 and "big" or t.name:upper()
    ]], "=listed")
    local list = {}
    bc.dump(f, { write = function(_, ...) list[#list + 1] = table.concat({ ... }) end,
		 flush = function() end }, true)
    out((table.concat(list):gsub("0x%x+", "ADDRESS")))
  end)
end
