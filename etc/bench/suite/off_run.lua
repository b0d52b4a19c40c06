----------------------------------------------------------------------------
-- Benchmark suite: one program for the table "Off"; run by off_state.lua.
--
-- Arguments: source folder, program, JIT (on or off), iterations. Prints CPU seconds,
-- cycles, and instructions that are not in the kernel, "-" for what cannot be counted.
----------------------------------------------------------------------------

local source, name, jit_mode, iterations = ...

-- There is no library `package` here.
local modules = { ffi = ffi, bit = bit, jit = jit }

function require(module)
  for _, folder in ipairs({ "/etc/bench/suite/", "/test/lib/" }) do
    if modules[module] then break end
    local chunk = loadfile(source .. folder .. module .. ".lua")
    modules[module] = chunk and chunk(module)
  end
  return modules[module] or error("no module " .. module)
end

if jit_mode == "off" then jit.off() end

-- The state itself is larger by some bytes in our build. The collector starts by the
-- size of the heap, and a cycle more is half a percent here: have it equal in both.
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
