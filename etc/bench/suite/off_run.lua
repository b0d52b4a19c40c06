----------------------------------------------------------------------------
-- Benchmark suite: one program for the table "Off"; run by off_state.lua.
--
-- Arguments: source folder, program, JIT (on or off), iterations and repetitions.
-- Prints CPU seconds and cycles of the fastest repetition, and the instructions of
-- all that are not in the kernel, or "-" where they cannot be counted.
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
local best, counted = nil, instructions()
for _ = 1, tonumber(repeats) do
  collectgarbage()
  local c, t = cycles(), os.clock()
  run(iterations)
  t = os.clock() - t
  c = c and cycles() - c
  if not best or t < best.seconds then best = { seconds = t, cycles = c } end
end
counted = counted and instructions() - counted
print(best.seconds, best.cycles or "-", counted or "-")
