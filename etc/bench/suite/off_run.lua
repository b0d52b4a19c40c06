----------------------------------------------------------------------------
-- One program for the table "Off" of the benchmark suite. off_state.lua runs it.
--
-- Arguments: source folder, program, JIT (on or off), iterations. Prints CPU seconds,
-- cycles, and instructions outside of the kernel. "-" stands for an unknown count.
----------------------------------------------------------------------------

local source, name, jit_mode, iterations = ...

-- This Lua state has no library `package`.
local modules = { ffi = ffi, bit = bit, jit = jit }

function require(module)
  for _, folder in ipairs({ "/etc/bench/suite/", "/test/lib/programs/" }) do
    if modules[module] then break end
    local chunk = loadfile(source .. folder .. module .. ".lua")
    modules[module] = chunk and chunk(module)
  end
  return modules[module] or error("no module " .. module)
end

if jit_mode == "off" then jit.off() end

-- The state itself is larger by some bytes in our build. The collector starts by the size
-- of the heap, and one more cycle costs half a percent here. So both get equal heaps.
local HEAP_STEP = 65536
local padding = ("x"):rep(HEAP_STEP - collectgarbage("count") * 1024 % HEAP_STEP)

local counter = require("counter")
local run = require("programs").by_name(name).run

local function none() end

local cycles = counter.open("cycles") or counter.open("cycles", true) or none
local instructions = counter.open("instructions", true) or none
iterations = tonumber(iterations)
collectgarbage()
local i, c, t = instructions(), cycles(), os.clock()
run(iterations)
t = os.clock() - t
c, i = c and cycles() - c, i and instructions() - i
assert(#padding > 0)	-- It is kept until here.
print(t, c or "-", i or "-")
