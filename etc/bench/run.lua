-- Runs a benchmark for etc/bench/off_cost, and prints the CPU seconds of its
-- fastest repetition. Arguments: file of the benchmarks, name,
-- rounds and repetitions. With the file alone it prints the names in it.

local file, name, rounds, repeats = ...
local list = dofile(file)

-- The real workloads of the tests are a list, the others are by name.
if list.by_name then
  local named = {}
  for _, w in ipairs(list.list) do named[w.name] = w.run end
  list = named
end

if name then
  local best = math.huge
  for _ = 1, tonumber(repeats) do
    collectgarbage()
    local start = os.clock()
    list[name](tonumber(rounds))
    best = math.min(best, os.clock() - start)
  end
  print(best)
else
  local names = {}
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  print(table.concat(names, " "))
end
