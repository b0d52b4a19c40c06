----------------------------------------------------------------------------
-- Modules that run for one sample, from single steps: see etc/bench/handler.
--
--   luajit handler.lua WORK
--
-- WORK/steps holds the addresses that ran, WORK/map the linker's map, WORK/symbols the
-- program's symbols.
----------------------------------------------------------------------------

local bit = require("bit")

local work = arg[1]
local CACHE_LINE = 64

-- Sections of code in the linker's map, by address: { first, last, module }.
local function read_map()
  local sections, name = {}, nil
  for line in io.lines(work .. "/map") do
    local section, at, size, file = line:match("^ (%.text%S*)%s+(0x%x+)%s+(0x%x+)%s+(.+)$")
    if not section then
      at, size, file = line:match("^%s+(0x%x+)%s+(0x%x+)%s+(.+)$")
      section = name
    end
    name = line:match("^ (%.text%S*)$")
    if section and tonumber(size) > 0 then
      local object = file:match("%(([^()]+)%.o%)$") or file:match("([^/]+)%.o$") or "the bench"
      sections[#sections + 1] = { tonumber(at), tonumber(at) + tonumber(size), object:gsub("_dyn$", "") .. "" }
    end
  end
  table.sort(sections, function(a, b) return a[1] < b[1] end)
  return sections
end

-- Addresses of functions, ascending.
local function read_symbols()
  local list = {}
  for line in io.lines(work .. "/symbols") do
    local at = line:match("^(%x+) [tTwWi] ")
    if at then list[#list + 1] = tonumber(at, 16) end
  end
  return list
end

-- The last element with a key of at most x.
local function before(list, x, key)
  local lo, hi = 1, #list
  while lo <= hi do
    local mid = bit.rshift(lo + hi, 1)
    if key(list[mid]) <= x then lo = mid + 1 else hi = mid - 1 end
  end
  return list[hi]
end

-- Samples: lists of addresses. Most samples of a program only capture: the one of the lower
-- quartile is such a sample, since steps are slow and batches become old.
local function read_steps()
  local samples, current = {}, {}
  for line in io.lines(work .. "/steps") do
    if line == "end" then
      samples[#samples + 1] = current
      current = {}
    else
      current[#current + 1] = tonumber(line, 16)
    end
  end
  table.sort(samples, function(a, b) return #a < #b end)
  return samples[math.ceil(#samples / 4)]
end

-- Does an instruction of the program end a straight run of code? An instruction of x86-64
-- has at most 15 bytes.
local function jumps(from, to)
  return to < from or to > from + 15
end

local sections, symbols, steps = read_map(), read_symbols(), read_steps()
local modules, list, all = {}, {}, { lines = 0, functions = 0, jumps = 0, instructions = 0 }
for i, pc in ipairs(steps) do
  local section = before(sections, pc, function(s) return s[1] end)
  local name = section and pc < section[2] and section[3] or "C library, kernel's vDSO"
  local module = modules[name]
  if not module then
    module = { name = name, lines = 0, functions = 0, jumps = 0, instructions = 0, seen = {} }
    modules[name] = module
    list[#list + 1] = module
  end
  local line = math.floor(pc / CACHE_LINE)
  local function_at = section and pc < section[2] and before(symbols, pc, function(s) return s end)
  local function first(what, key)
    if key and not module.seen[what .. key] then
      module.seen[what .. key] = true
      module[what] = module[what] + 1
      all[what] = all[what] + 1
    end
  end
  first("lines", line)
  first("functions", function_at)
  for _, t in ipairs({ module, all }) do
    t.instructions = t.instructions + 1
    if steps[i + 1] and jumps(pc, steps[i + 1]) then t.jumps = t.jumps + 1 end
  end
end
table.sort(list, function(a, b) return a.lines > b.lines or (a.lines == b.lines and a.name < b.name) end)

local ROW = "%-26s %7s %10s %12s %13s"
print(("\none sample of 20 + 20 frames: %d modules"):format(#list))
print(ROW:format("module", "lines", "functions", "taken jumps", "instructions"))
local function row(name, t)
  print(ROW:format(name, t.lines, t.functions, t.jumps, t.instructions))
end
for _, module in ipairs(list) do row(module.name, module) end
row("all", all)
