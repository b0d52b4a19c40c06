-- The events of the compiler change nothing: a program gets the same traces with and without them, down to the
-- registers of each instruction. As many loops are blacklisted as bytecode tells.

local t = require("tools_test")
local truth = require("compiler_truth")
local jutil = require("jit.util")
local vmdef = require("jit.vmdef")

local PROGRAM = [[
  local ffi = require("ffi")
  local n, list, text = 0, {}, ""
  for i = 1, 300 do if i % 3 == 0 then n = n + i elseif i % 7 == 0 then n = n - 1 else n = n + 0.5 end end
  for i = 1, 300 do list[i] = { x = i, y = n } end
  for i = 1, 300 do n = n + list[i].x + #tostring(i) end
  local function sum(k) if k == 0 then return 0 end return sum(k - 1) + k end
  for i = 1, 100 do n = n + sum(i % 3) end
  local a = ffi.new("double[100]")
  for i = 0, 99 do a[i] = i * n end
  for i = 0, 99 do n = n + a[i] end
  for i = 1, 100 do text = ("%d,%s"):format(i, text:sub(1, 10)) end
  return n, text
]]

-- Returns a text of all traces.
local function traces()
  local parts = {}
  for tr = 1, 1000 do
    local info = jutil.traceinfo(tr)
    if info then
      parts[#parts + 1] = ("trace %d: %d %d %d %s"):format(tr, info.nins, info.nk, info.link, info.linktype)
      for ref = 1, info.nins do
	local m, ot, op1, op2, ridsp = jutil.traceir(tr, ref)
	parts[#parts + 1] = ("%s %s %s %s %s"):format(m, ot, op1, op2, ridsp)
      end
    end
  end
  return table.concat(parts, "\n"), #parts
end

-- Loaded once: counters of hot code depend on its address.
local program = assert(loadstring(PROGRAM))

local function run(clock)
  jit.flush()
  collectgarbage()
  collectgarbage("stop")	-- Its steps would end in other exits each time.
  if clock then assert(misc.sysprof.start { mode = "C", clock = clock, path = "same.bin" }) end
  jit.opt.start(3, "hotloop=1", "hotexit=1")	-- Sets all counters of hot code.
  local n, text = program()
  jit.off()
  if clock then assert(misc.sysprof.stop()) end
  local all, parts = traces()
  jit.on()
  collectgarbage("restart")
  return ("%.17g %s\n%s"):format(n, text, all), parts
end

for _, f in ipairs { traces, run, t.ok, t.equal } do jit.off(f) end

for _ = 1, 6 do run() end	-- The first ones also load what the program needs.
local plain, parts = run()
t.ok(parts > 100, "the program has traces")
for _, clock in ipairs { "jit", "trace-abort", "jit,trace-exit/period=1/", "cpu,jit,trace-exit" } do
  t.ok(run(clock) == plain, "other traces or results with " .. clock)
  t.ok(run() == plain, "other traces or results after " .. clock)
end

-- -- Blacklisted code ------------------------------------------------------------

local function blacklisted(f)
  local n = 0
  for pc = 0, jutil.funcinfo(f).bytecodes - 1 do
    local op = jutil.funcbc(f, pc) % 256
    local name = vmdef.bcnames:sub(6 * op + 1, 6 * op + 6):gsub(" ", "")
    if name == "IFORL" or name == "ILOOP" or name == "IITERL" or name == "IFUNCF" then n = n + 1 end
  end
  return n
end

local keep

local function several(n)
  for i = 1, n do keep = function() return i end end
  for i = 1, n do keep = function() return n end end
  local k = 0
  while k < n do k = k + 1 keep = function() return n end end
end

jit.opt.start(3, "hotloop=56", "hotexit=10")
assert(misc.sysprof.start { mode = "C", clock = "trace-blacklist", path = "black.bin" })
several(300000)
assert(misc.sysprof.stop())
local sums, sum, total = truth.sums("black.bin", "trace-blacklist")
t.ok(keep() == 300000, "the last function")
t.equal(blacklisted(several), 3, "blacklisted bytecode")
t.equal(sum, 3, "blacklists")
t.equal(total, 3, "their total")
for key, n in pairs(sums) do
  t.ok(key:find("NYI: bytecode FNEW", 1, true) and n == 1, "blacklisted: " .. key)
end
t.finish()
