-- The table of etc/bench/labels. Its argument: the rounds. The folder has empty.so.

local ffi = require("ffi")

local ROUNDS = tonumber(arg[1])
local CALLS = 300000	-- Of a measurement.

ffi.cdef [[
  typedef struct { long sec, nsec; } labels_timespec;
  int clock_gettime(int, labels_timespec *);
  void empty_ffi(const void *p);
  void luaM_sysprof_uselabels(const void *labelset);
]]
local ts = ffi.new("labels_timespec")
local THREAD_CPU = 3

local function cpu_ns()
  ffi.C.clock_gettime(THREAD_CPU, ts)
  return tonumber(ts.sec) * 1e9 + tonumber(ts.nsec)
end

package.cpath = "./?.so"
local empty = require("empty")
local C, lib = ffi.C, ffi.load("./empty.so")
local sysprof = misc.sysprof
local label, a, b = sysprof.label, sysprof.labelset { route = "/a" }, sysprof.labelset { route = "/b", tenant = 7 }

-- Each does CALLS calls, in loops of their own: so each has its own compiled code.
local CASES = {
  { "loop", function() for _ = 1, CALLS / 2 do end end },
  { "empty C function", function() for _ = 1, CALLS / 2 do empty(a) empty(b) end end },
  { "label(set)", function() for _ = 1, CALLS / 2 do label(a) label(b) end end },
  { "empty by FFI", function() for _ = 1, CALLS / 2 do lib.empty_ffi(a) lib.empty_ffi(b) end end },
  { "uselabels by FFI", function()
    for _ = 1, CALLS / 2 do C.luaM_sysprof_uselabels(a) C.luaM_sysprof_uselabels(b) end
  end },
  { "label{route=,tenant=}", function()
    for _ = 1, CALLS / 2 do label { route = "/a", tenant = 7 } label { route = "/b", tenant = 7 } end
  end },
  { "coroutine.create", function() for _ = 1, CALLS / 2 do coroutine.create(empty) coroutine.create(empty) end end },
}

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

local function measure(title, with)
  local times = {}
  if with then assert(sysprof.start { mode = "C", hz = 1000, path = "labels.bin" }) end
  for i = 1, #CASES do times[i] = {} CASES[i][2]() end
  for round = 1, ROUNDS do
    for i, case in ipairs(CASES) do
      label(a)
      local before = cpu_ns()
      case[2]()
      times[i][round] = (cpu_ns() - before) / CALLS
    end
  end
  label(nil)
  if with then assert(sysprof.stop()) end
  for i, case in ipairs(CASES) do
    if i > 1 then print(("%-26s %-24s %8.1f"):format(title, case[1], median(times[i]) - median(times[1]))) end
  end
end

print(("%-26s %-24s %8s"):format("", "call", "ns"))
for _, with in ipairs { false, true } do
  local profile = with and ", with a profile" or ""
  jit.off()
  jit.flush()
  measure("interpreted" .. profile, with)
  jit.on()
  measure("compiled" .. profile, with)
end
