-- Demonstration program: computes the same in C and in Lua in turns, and profiles itself.
-- Measures the shares of both with os.clock. The JIT compiler is off.
--
-- usage: luajit lua_payload.lua [SECONDS [PROFILE]]
--   SECONDS  how long it runs, default 10
--   PROFILE  file to write, default sysprof.bin
--
-- Needs libc_payload.so, built from c_payload.c, on the library path.

local ffi = require("ffi")
local misc = require("misc")

local seconds = tonumber(arg[1] or 10)
local path = arg[2] or "sysprof.bin"
local depth_min, depth_max = 16, 21

ffi.cdef("double c_payload(double n);")
local lib = ffi.load("c_payload")

jit.off()
jit.flush()

local function lua_payload(n)
  if n < 2 then
    return n
  end
  return lua_payload(n - 1) + lua_payload(n - 2)
end

assert(misc.sysprof.start({ mode = "C", interval = 4, path = path }))

-- Turns have different lengths. If all rounds took the same time, the program could keep
-- step with the clock of the samples. The measurement is outside of a turn.
local in_c, in_lua, rounds = 0, 0, 0
local start = os.clock()
local now = start
repeat
  local depth = math.random(depth_min, depth_max)
  lib.c_payload(depth)
  local after_c = os.clock()
  lua_payload(depth)
  local after_lua = os.clock()
  in_c = in_c + (after_c - now)
  in_lua = in_lua + (after_lua - after_c)
  rounds = rounds + 1
  now = after_lua
until now - start >= seconds

assert(misc.sysprof.stop())

local all = now - start
print(string.format("%d rounds in %.2f s of CPU time", rounds, all))
print(string.format("c_payload    %5.2f %%", 100 * in_c / all))
print(string.format("lua_payload  %5.2f %%", 100 * in_lua / all))
