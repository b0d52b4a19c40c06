----------------------------------------------------------------------------
-- Benchmark suite: one program for the table "Off"; run by off_state.lua.
--
-- Arguments: source folder, program, JIT (on or off), iterations and repetitions.
-- Prints of the fastest repetition CPU seconds, cycles, and instructions that are
-- not in the kernel, or "-" where they cannot be counted.
----------------------------------------------------------------------------

local source, name, jit_mode, iterations, repeats = ...

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

local counter = require("counter")
local run = require("programs").by_name(name).run

local function none() end

local cycles = counter.open("cycles") or counter.open("cycles", true) or none
local instructions = counter.open("instructions", true) or none
iterations = tonumber(iterations)
local best
for _ = 1, tonumber(repeats) do
  collectgarbage()
  local i, c, t = instructions(), cycles(), os.clock()
  run(iterations)
  t = os.clock() - t
  c, i = c and cycles() - c, i and instructions() - i
  if not best or t < best.seconds then best = { seconds = t, cycles = c, instructions = i } end
end
print(best.seconds, best.cycles or "-", best.instructions or "-")
