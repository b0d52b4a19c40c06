-- TIMEOUT: 600
-- A profile is complete, with names, wherever the program stops it. The search for names
-- then reads a VM in the middle of its work.

local t = require("tools_test")
local reader = require("sysprof.read.reader")
local sysprof = misc.sysprof

-- Each of these calls f() somewhere.
local places = {
  in_coroutine = "coroutine.wrap(function() f() end)()",
  in_nested_coroutine = [[
    coroutine.wrap(function()
      for _ in coroutine.wrap(function() f() coroutine.yield(nil) end) do end
    end)()]],
  in_finalizer = [[
    do local p = newproxy(true) getmetatable(p).__gc = f end
    collectgarbage()]],
  in_finalizer_of_cdata = [[
    do local ffi = require("ffi") local c = ffi.gc(ffi.new("int[1]"), f) end
    collectgarbage() collectgarbage()]],
  in_error_handler = "xpcall(error, f)",
  in_hook = [[
    local done
    debug.sethook(function() if not done then done = true f() end end, "", 1)
    local x = 1
    debug.sethook()]],
  in_traversal = [[
    local big = {}
    for i = 1, 100 do big["k" .. i] = function() end end
    for k in pairs(big) do big[k] = nil if k == "k50" then f() end end]],
  in_gsub = "string.gsub('x', 'x', function() f() end)",
  in_metamethod = [[
    local o = setmetatable({}, { __index = function() f() end })
    local _ = o.x]],
  in_ffi_callback = [[
    local ffi = require("ffi")
    local cb = ffi.cast("void (*)(void)", function() f() end)
    cb()]],
  in_tail_call = "local function g() return f() end g()",
  in_vararg = "(function(...) f() end)(1, 2, 3)",
  in_deep_recursion = [[
    local function deep(n) if n == 0 then f() else deep(n - 1) end return n end
    deep(10000)]],
  after_half_a_collection = "collectgarbage('step', 1) f()",
  with_odd_globals = [[
    setmetatable(_G, { __index = function() error("called") end, __newindex = error })
    local old = package
    rawset(_G, "package", nil)
    f()
    rawset(_G, "package", old)
    setmetatable(_G, nil)]],
}

function known()
  local s = 0
  for i = 1, 20000 do s = s + i % 7 end
  return s
end

local function work(samples)
  local deadline = os.clock() + 20
  repeat known() until sysprof.report().samples >= samples or os.clock() > deadline
end

local function has_name(path, name)
  local p = assert(reader.read(path))
  t.ok(p.complete, path .. " is complete")
  for _, f in p.lfuncs:each() do
    if f.name == (name or "known") then return true end
  end
  return false
end

for _, jit_on in ipairs({ false, true }) do
  jit[jit_on and "on" or "off"]()
  for place, code in pairs(places) do
    local path = place .. ".bin"
    local stops = 0
    assert(sysprof.start({ mode = "C", interval = 0.2, clock = "wall-signal", path = path }))
    work(30)
    local env = setmetatable({ f = function()
      stops = stops + 1
      if stops == 1 then assert(sysprof.stop()) end
    end }, { __index = _G })
    setfenv(assert(loadstring(code)), env)()
    t.ok(stops >= 1, place .. " was reached")
    t.ok(has_name(path), place .. ": names")
  end
end

-- The VM is closed, or the process ends, with the profile running.
for how, code in pairs({ ["end"] = "", exit = "os.exit(0)", close = "os.exit(0, true)",
			 exit_in_coroutine = "coroutine.wrap(function() os.exit(0) end)()",
			 error = "error('expected by the test')" }) do
  local path = "ends_by_" .. how .. ".bin"
  t.write_file("ends.lua", ([[
    function known() local s = 0 for i = 1, 20000 do s = s + i %% 7 end return s end
    assert(misc.sysprof.start({ mode = "C", interval = 0.2, clock = "wall-signal", path = %q }))
    local deadline = os.clock() + 20
    repeat known() until misc.sysprof.report().samples >= 30 or os.clock() > deadline
    %s]]):format(path, code))
  t.shell("'" .. t.luajit .. "' ends.lua")
  t.ok(has_name(path), how .. ": names")
end

-- Only the main chunk defines the body of a coroutine, and it has ended when the names are searched. It has no sample,
-- but ran when the coroutine was resumed. Each wait is a sample, or a part of a sum.
for threshold in pairs({ ["0"] = true, ["1000000000"] = true }) do
  local path = "waits_" .. threshold .. ".bin"
  t.write_file("waits.lua", ([[
    assert(misc.sysprof.start({ mode = "C", clock = "coroutine-wait/threshold=%s/", path = %q }))
    local function body() for _ = 1, 3 do coroutine.yield() end end
    local resume = coroutine.wrap(body)
    for _ = 1, 4 do resume() end]]):format(threshold, path))
  t.shell("'" .. t.luajit .. "' waits.lua")
  t.ok(has_name(path, "body"), path .. ": names")
end
t.finish()
