----------------------------------------------------------------------------
-- Comparisons of real runs: how often two equal programs differ, and how often a change is found.
--
-- etc/check_compare runs this.
----------------------------------------------------------------------------

local json = require("json_decode")
local power = require("power_of_t")

local check_compare = {}

local LEVEL = 0.05
local ROUNDS = { on = 20, off = 10 }	-- Some 50 ms.

-- -- Comparisons -----------------------------------------------------------------

local function quoted(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

-- Compares two lists of arguments of the program. Returns the answer; fails with the message.
function check_compare.one(world, pairs_wanted, jit, arguments_a, arguments_b)
  local program = quoted(world.source .. "/test/lib/programs/compared_program.lua")
  local rounds = ROUNDS[jit]
  local pipe = io.popen(("%s %s compare --repeat=%d --limit=0 --format=json%s -- %s %d%s -- %s %d%s"):format(
    quoted(world.luajit), quoted(world.source .. "/tools/luajit-sysprof.lua"), pairs_wanted,
    jit == "off" and " -j off" or "", program, rounds, arguments_a, program, rounds, arguments_b))
  local s = pipe:read("*a")
  pipe:close()
  return json.decode(s)
end

-- Returns whether a function changed, and whether one by this name did.
function check_compare.marks(answer, name)
  local any, its = false, nil
  for _, one in ipairs(answer.functions) do
    any = any or one.changed
    if name and one.name == name then its = one end
  end
  return any, its
end

-- How many of n cases may show what has the probability LEVEL: 8 of 100 in many cases.
function check_compare.most(n)
  return math.ceil(LEVEL * n + 2 * math.sqrt(LEVEL * (1 - LEVEL) * n))
end

-- -- The command -----------------------------------------------------------------

-- The half of an interval, in standard errors.
local function half_of(n) return power.quantile(LEVEL, n - 1) end

local CASES = {
  same = { "", "" }, ["total-10"] = { "", " all 1.1", total = 0.1 }, ["total-20"] = { "", " all 1.2", total = 0.2 },
  ["one-10"] = { "", " 2 1.1", one = 0.1 }, ["one-20"] = { "", " 2 1.2", one = 0.2 },
}

-- Returns whether all was as it should be. seconds: the longest time.
function check_compare.run(world, case, jit, sets, n, seconds)
  local its, stop = CASES[case], os.time() + seconds
  if not its then error("there is no case " .. case, 0) end
  local done, changed, marked, found, equal, wrong_way = 0, 0, 0, 0, 0, 0
  local variance, own_variance, before, tested = 0, 0, 0, 0
  while done < sets and os.time() < stop do
    local answer = check_compare.one(world, n, jit, its[1], its[2])
    local any, own = check_compare.marks(answer, "work:2")
    done, tested = done + 1, tested + #answer.functions
    if answer.verdict == "slower" or answer.verdict == "faster" then changed = changed + 1 end
    if answer.verdict == "equal" then equal = equal + 1 end
    if answer.verdict == "faster" then wrong_way = wrong_way + 1 end
    if any then marked = marked + 1 end
    if own and own.changed then found = found + 1 end
    variance = variance + ((answer.cpu.high - answer.cpu.low) / 2 / half_of(n))^2
    if own then
      own_variance = own_variance + ((own.high - own.low) / 2 / half_of(n))^2
      before = before + own.before
    end
  end
  print(("%s, JIT %s: %d comparisons of %d pairs: %d changed (%d faster), %d equal; %d mark a function of %.0f"):format(
    case, jit, done, n, changed, wrong_way, equal, marked, tested / done))
  print(("  standard error of the change %.2f %%"):format(100 * math.sqrt(variance / done)))
  if its.total then
    -- The start of the program does not change.
    print(("  found %.0f %%, predicted %.0f %%"):format(100 * (changed - wrong_way) / done,
      100 * power.of(its.total / math.sqrt(variance / done), n - 1, LEVEL)))
  elseif its.one then
    local deviation = math.sqrt(own_variance / done)
    print(("  the function has %.2f ms, standard error %.3f ms; found %.0f %%, predicted %.0f %%"):format(
      before / done, deviation, 100 * found / done,
      100 * power.of(its.one * before / done / deviation, n - 1, LEVEL / (tested / done))))
  else
    local most = check_compare.most(done)
    print(("  at most %d may change, or mark a function"):format(most))
    return changed <= most and marked <= most
  end
  return true
end

return check_compare
