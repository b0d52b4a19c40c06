-- Each reason for which LuaJIT gives up a trace: a program provokes it, and trace-abort shows it at its line, with
-- LuaJIT's words. Reasons that no program can provoke are listed with why.

local t = require("tools_test")
local truth = require("compiler_truth")
local vmdef = require("jit.vmdef")

-- Reasons that no program of this LuaJIT can provoke.
local NEVER = {
  ["retry recording"] = "needs a LuaJIT with LUAJIT_ENABLE_TABLE_BUMP",
  ["inconsistent register allocation"] = "an internal error of LuaJIT",
  ["NYI: cannot assemble IR instruction %d"] = "the assembler of x64 has all instructions",
  ["NYI: register coalescing too complex"] = "needs a parent with more values than a trace can have",
  ["hit mcode limit (retrying)"] = "a second try, not an abort",
}

local function lines(n, line) return (line .. " "):rep(n) end

local function numbered(n, form, sep)
  local list = {}
  for i = 1, n do list[i] = form:gsub("#", i) end
  return table.concat(list, sep or " ")
end

-- Name, parameters of the compiler, program. The line with the comment "--!" has the abort, in any line without one.
local CASES = {
  -- First: LuaJIT looks at the parameter when the buffer grows.
  { "too many snapshots", "maxsnap=5", "local a, n = { 1 }, 0\nfor i = 1, 300 do " ..
    numbered(50, "if a[1] < i * # then n = n + # end a[1] = i") .. " end --!" },
  { "error thrown or hook called during recording", "hotloop=2", [[
    debug.sethook(function() end, "", 5)
    for i = 1, 100 do local x = i * 2 x = x + 1 x = x * 2 end
    debug.sethook()]] },
  { "trace too short", "minstitch=50", [[
    local f = io.type
    for i = 1, 100 do f(1) end]] },
  { "trace too long", "maxrecord=10", "for i = 1, 100 do local s = 0 " .. lines(9, "s = s + i") .. " end --!" },
  { "trace too deep", nil, "local function f() local " .. numbered(180, "a#", ", ") .. " return 1 end\n" ..
    "local function g() local " .. numbered(120, "b#", ", ") .. " local x = f() return x end\n" ..
    "for i = 1, 100 do g() end" },
  { "blacklisted", nil, [[
    local function f(n, makes)
      local k = 0
      while k < n do --!
	k = k + 1
	if makes then keep = function() end end
      end
    end
    f(300000, true)
    for i = 1, 2000 do f(3) end]] },
  { "NYI: bytecode %d", nil, [[
    for i = 1, 100 do
      local f = function() return i end --!
    end]] },
  { "leaving loop in root trace", nil, [[
    local function f(n)
      for i = 1, n do local x = i end
    end --!
    for i = 1, 300 do f(2) end]] },
  { "inner loop in root trace", nil, [[
    for i = 1, 100 do
      if i % 60 > 55 then
	for k = 1, 10 do local x = i + k end
      end
    end]] },
  { "loop unroll limit reached", "loopunroll=2", [[
    local n = 0
    for i = 1, 500 do
      if i % 60 > 55 then
	local k = 0
	repeat k = k + 1 until k > 0
	repeat k = k + 1 until k > 0
	repeat k = k + 1 until k > 0
	repeat k = k + 1 until k > 0
      end
      n = n + 1
    end]] },
  { "bad argument type", nil, "for i = 1, 100 do pcall(math.sin, {}) end" },
  { "JIT compilation disabled for function", nil, [[
    local function f(x) return x + 1 end --
    jit.off(f)
    for i = 1, 100 do f(i) end]] },
  { "call unroll limit reached", nil, [[
    local function f(n) return n < 2 and n or f(n - 1) + f(n - 2) end --!
    f(18)]] },
  { "down-recursion, restarting", nil, [[
    local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end --!
    for i = 1, 300 do f(50) end]] },
  { "NYI: unsupported variant of FastFunc %s", nil, [[
    local ffi = require("ffi")
    for i = 1, 100 do ffi.typeof("int") end]] },
  { "NYI: return to lower frame", nil, [[
    local function f(k) for j = 1, k do if j > 70 then return j end end return k end --!
    for i = 1, 300 do pcall(f, i) end]] },
  { "store with nil or NaN key", nil, [[
    local a = {}
    local function f(k, i) a[k] = i end --!
    for i = 1, 100 do pcall(f, 0 / 0, i) end]] },
  { "missing metamethod", nil, [[
    local function f(x, i) return x + i end --!
    for i = 1, 100 do pcall(f, nil, i) end]] },
  { "looping index lookup", nil, [[
    local a = {}
    setmetatable(a, { __index = a })
    local function f() return a.x end --!
    for i = 1, 100 do pcall(f) end]] },
  { "NYI: mixed sparse/dense table", nil, [[
    local a, n = { 1, 2, 3, nil, 5 }, 0
    for i = 1, 200 do a["x" .. i] = i end
    for i = 1, 300 do n = n + (a[-i] or 1) end
    for i = 1, 300 do n = n + (a[i] or 1) end]] },
  { "symbol not in cache", nil, [[
    local ffi = require("ffi")
    local names, n = {}, 0
    for name in ("getuid geteuid getgid getegid getppid getpid rand random lrand48 mrand48 drand48 abort"):gmatch("%a+%d*") do
      names[#names + 1] = name
      ffi.cdef("int " .. name .. "(void);")
    end
    jit.opt.start("hotloop=2")
    for i = 1, #names do local f = ffi.C[names[i] ] end]] },
  { "NYI: unsupported C type conversion", nil, [[
    local ffi = require("ffi")
    local list = ffi.typeof("int[?]")
    for i = 1, 100 do local x = list(3, i) end]] },
  { "NYI: unsupported C function type", nil, [[
    local ffi = require("ffi")
    ffi.cdef("typedef struct { int quot, rem; } pair_of_div; pair_of_div div(int, int);")
    for i = 1, 100 do ffi.C.div(i, 3) end]] },
  { "guard would always fail", "instunroll=0", [[
    local n, k = 0, 1
    for i = 1, 1000 do
      if k == 1 then n = n + 1 k = 2 else k = 1 end
    end]] },
  { "too many PHIs", nil, "local " .. numbered(80, "a#", ", ") .. " = " .. numbered(80, "#", ", ") .. "\n" ..
    "for i = 1, 100 do " .. numbered(80, "a# = a# + i") .. " end --!" },
  { "persistent type instability", "instunroll=0", [[
    local x = 1
    for i = 1, 1000 do --
      if x == 1 then x = "a" else x = 1 end
    end]] },
  { "failed to allocate mcode memory", "sizemcode=32 maxmcode=32 hotloop=1",
    "for i = 1, 300 do loadstring('local s = 0 for i = 1, 20 do s = s + i % ' .. i .. ' end')() end" },
  { "machine code too long", "sizemcode=4 maxmcode=400 maxsnap=500",
    "local s, a = 0.5, { 1.5 }\nfor i = 1, 100 do " .. lines(300, "s = s * 1.5 + a[1] a[1] = s") .. " end --!" },
  { "too many spill slots", "maxirconst=10000", "local a = { 1.5, 2.5 }\nlocal function f(i)\n" ..
    numbered(190, "local a# = a[1] * # + i") .. "\nif i % 3 == 5 then a[2] = a1 end return " .. numbered(190, "a#", " + ") .. " end\n" ..
    "for i = 1, 100 do f(i) end" },
  { "NYI: PHI shuffling too complex", nil, "local " .. numbered(40, "a#", ", ") .. " = " .. numbered(40, "#.5", ", ") .. "\n" ..
    "for i = 1, 200 do local x = a1 " .. numbered(39, "a# = a@ + 1.5"):gsub("a(%d+) = a@", function(n)
      return ("a%d = a%d"):format(n, n + 1) end) .. " a40 = x end --!" },
}

local TRIES = 20	-- Loops share counters by their addresses: another one may get hot first.

local function plain(s) return (s:gsub("%%[ds].*", "")) end

local function provoke(case)
  local name, parameters, program = case[1], case[2], case[3]
  local chunk, line, at = assert(loadstring(program, "=" .. (name:gsub("%W", "_"):sub(1, 40)))), nil, 0
  for text in (program .. "\n"):gmatch("(.-)\n") do
    at = at + 1
    if text:find("%-%-!") then line = at end
  end
  jit.flush()
  jit.opt.start(3)
  for word in (parameters or ""):gmatch("%S+") do jit.opt.start(word) end
  truth.begin()
  assert(misc.sysprof.start { mode = "C", clock = "trace-abort", path = "each.bin" })
  chunk()
  assert(misc.sysprof.stop())
  local log = truth.finish()
  jit.opt.start(3, "hotloop=56", "hotexit=10", "maxrecord=4000", "maxsnap=500", "minstitch=0", "loopunroll=15", "instunroll=4",
		"sizemcode=64", "maxmcode=2048")
  local sums, sum = truth.sums("each.bin", "trace-abort")
  t.equal(sum, log.abort or 0, name .. ": aborts")
  local found, listed = false, {}
  for key in pairs(sums) do
    local its, reason = key:match("^(%d+) (.*)$")
    found = found or reason:sub(1, #plain(name)) == plain(name) and (not line or tonumber(its) == line)
  end
  for key, n in pairs(sums) do listed[#listed + 1] = n .. " " .. key end
  return found, table.concat(listed, ", ")
end
jit.off(provoke)

local has = {}
for _, case in ipairs(CASES) do
  local found, list
  has[plain(case[1])] = true
  for _ = 1, TRIES do
    found, list = provoke(case)
    if found then break end
  end
  t.ok(found, ("not found: %s, but %s"):format(case[1], list))
end
for number = 0, #vmdef.traceerr do
  local name = vmdef.traceerr[number]
  local is_never = false
  for never in pairs(NEVER) do is_never = is_never or plain(never) == plain(name) end
  t.ok(has[plain(name)] or is_never, "nothing provokes: " .. name)
end
t.finish()
