----------------------------------------------------------------------------
-- Code of one workload: runs it in same_code_host and writes LuaJIT's bytecode and
-- traces, like luajit -bl and -jdump. The last line holds the number of samples.
--
-- Arguments: folder of jit/*.lua, output file, file of workloads, name, rounds.
----------------------------------------------------------------------------

local modules, path, file, name, rounds = ...

-- The host does not open the library package.
function require(module)
  if not loaded[module] then
    local source = ("%s/%s.lua"):format(modules, module:gsub("%.", "/"))
    local open = preload[module] or assert(loadfile(source))
    loaded[module] = open(module) or true
  end
  return loaded[module]
end

-- The strings of the dump set the pace of the collector, and the collector decides which
-- exits traces take. So it runs only when the script calls it.
local collect = collectgarbage
function collectgarbage(...)
  local result = collect(...)
  collect("stop")
  return result
end

local list = dofile(file)
local run = list.by_name and list.by_name(name).run or list[name]

local out = assert(io.open(path, "w"))
require("jit.bc").dump(assert(loadfile(file)), out, true)
out:close()

local dump = require("jit.dump")
dump.on("+tbimsr", path .. ".jit")
collectgarbage()
profile(true)
local result = run(tonumber(rounds))
local samples = profile(false)
dump.off()

out = assert(io.open(path, "a"))
for line in io.lines(path .. ".jit") do out:write(line, "\n") end
out:write("result ", tostring(result), "\n", samples, "\n")
out:close()
os.remove(path .. ".jit")
