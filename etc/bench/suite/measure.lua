----------------------------------------------------------------------------
-- Measurements of the benchmark suite: runs slices.lua and reads its output.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local reader = require("sysprof.read.reader")
local proc = require("proc")
local profilers = require("profilers")

local measure = {}

-- Seconds that a child may take beyond its time: other programs may take most of the CPU.
local PATIENCE = 200

local WARM_SECONDS = 0.15	-- The program runs before the first slice.
local ROUNDS_MIN = 2		-- In both orders.
local SESSION_SLICES = 4	-- Of a profiler that stands alone, if there is time.

-- Labels of slices may have a blank, "off KIND".
local SLICE = "^slice (.-) (%d+) (%d+) (%S+) (%S+) (%S+)$"

local function read_lines(text)
  local result = { kinds = {}, collected = {} }
  local function kind_of(name)
    if not result.kinds[name] then
      result.kinds[name] = { cpu = {}, wall = {}, cycles = {}, samples = {}, handler = {},
			     profiled = 0, returned = {}, numbers = {} }
    end
    return result.kinds[name]
  end
  for line in text:gmatch("[^\n]+") do
    local label, cpu, wall, cycles, samples, handler = line:match(SLICE)
    if label then
      local kind = kind_of(label)
      local i = #kind.cpu + 1
      kind.cpu[i], kind.wall[i] = tonumber(cpu), tonumber(wall)
      kind.cycles[i] = tonumber(cycles)
      kind.samples[i], kind.handler[i] = tonumber(samples), tonumber(handler)
    end
    local word = {}
    for w in line:gmatch("%S+") do word[#word + 1] = tonumber(w) or w end
    if word[1] == "session" then
      local kind = kind_of(word[2])
      kind.numbers[#kind.numbers + 1] = word[3]
      kind.profiled = kind.profiled + word[4]
      kind.returned[#kind.returned + 1] = tonumber(word[5])
    elseif word[1] == "collected" then
      result.collected[word[2]] = { cpu = word[3], wall = word[4], number = word[5] }
    elseif word[1] == "parent" then
      result.parent = word[2]
    elseif word[1] == "counted" then
      result.counted = { allocs = word[2], bytes = word[3] }
    end
  end
  return result
end

-- Runs slices.lua. job holds some of its arguments: program, kinds or blocks (see there and
-- profilers), seconds, collect. It also holds jit ("on" or "off"), env, limit: seconds after
-- which it is killed, and around: a function that returns the words before luajit in the
-- command.
-- Returns { kinds = { NAME = { cpu=, wall=, cycles=, samples=, handler=, profiled=,
-- returned=, numbers= } }, collected=, parent=, counted= }; or nil and why. returned and numbers are
-- lists with one value for each session. profiled is the time of all sessions. The others
-- are lists with one value for each slice, times in ns; a list of unknown values is empty.
function measure.run(suite, job)
  local folder = suite.work .. "/slices"
  proc.run({ "rm", "-rf", folder })
  proc.run({ "mkdir", folder })
  local args = {}
  for _, arg in ipairs(job.around and job.around(folder) or {}) do args[#args + 1] = arg end
  args[#args + 1] = suite.luajit
  args[#args + 1] = "-j" .. job.jit
  args[#args + 1] = suite.here .. "/slices.lua"
  args[#args + 1] = "folder=" .. folder
  args[#args + 1] = "bare_library=" .. suite.bare_library
  args[#args + 1] = "slice_ms=" .. suite.slice_ms
  args[#args + 1] = "warm=" .. (suite.hasty and 0.02 or WARM_SECONDS)
  args[#args + 1] = "rounds_min=" .. ROUNDS_MIN
  args[#args + 1] = "session_slices=" .. (suite.quick and 1 or SESSION_SLICES)
  for key, value in pairs(job) do
    if type(value) == "string" or type(value) == "number" then
      args[#args + 1] = key .. "=" .. value
    end
  end
  local out = folder .. "/out"
  local ok, why = proc.run(args, { out = out, err = folder .. "/err", env = job.env,
				   seconds = job.limit or 3 * job.seconds + PATIENCE })
  if not ok then return nil, why end
  local result = read_lines(proc.read(out))
  if not next(result.kinds) then return nil, "nothing was measured" end
  result.folder = folder
  return result
end

-- Totals of the profiles of a kind of sysprof: { samples=, lost=, throttled= }.
function measure.reports(result, kind)
  local sum = { samples = 0, lost = 0, throttled = 0 }
  for _, n in ipairs(result.kinds[kind].numbers) do
    local path = profilers.path(result.folder, kind, n)
    local p, why = reader.read(path)
    if not p then error(("%s: %s"):format(path, why), 0) end
    if not p.complete then error(("%s: %s"):format(path, p:problem_text()), 0) end
    sum.samples = sum.samples + p:totals()
    sum.throttled = sum.throttled + (events.counter_sum(p, G.SPF_EVENT_THROTTLED) or 0)
    sum.lost = sum.lost + (p.counters[G.SPF_COUNTER_LOST_BUFFER] or 0) +
	       (p.counters[G.SPF_COUNTER_LOST_WRITER] or 0)
  end
  return sum
end

-- Time that kind a costs more than kind b for each sample, a list in ns. a takes rate
-- samples in each ns of CPU time.
function measure.costs(result, a, b, rate)
  local base, costs = result.kinds[b].cpu, {}
  for i, cpu in ipairs(result.kinds[a].cpu) do costs[i] = (cpu - base[i]) / (cpu * rate) end
  return costs
end

return measure
