----------------------------------------------------------------------------
-- Runs of two programs, read and compared: totals, functions, and what makes runs incomparable.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local comparison = require("sysprof.model.comparison")
local events = require("sysprof.model.events")
local files = require("sysprof.base.files")
local headline = require("sysprof.show.headline")
local reader = require("sysprof.read.reader")
local samefuncs = require("sysprof.model.samefuncs")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")
local view = require("sysprof.show.view")
local work = require("sysprof.names.work")

local PROFILER = work.name(G.SPF_WORK_PROFILER)
local NO_LUA = "[no Lua function]"
local LEAST_SAMPLES = 1		-- Of a function in a run, on average; fewer tell nothing.
local COMPILED_SHARE = 0.05	-- Of the samples: with more, the JIT is on.
local COMPILED_SAMPLES = 60	-- With so many and none compiled, the JIT is off: by chance, one in 20 has none.
local NAMED = 3			-- Runs that a warning names.

local comparedruns = {}

-- -- Functions -----------------------------------------------------------------

local function cpu_event(profile)
  for _, e in ipairs(events.list(profile)) do
    if units.of(e.unit).is_cpu and not e.parts then return e end
  end
end

local function view_of(profile, event)
  return view.new(profile, { event = event.name, weight = "event" })
end

-- Calls visit(part, value) with the innermost Lua function of each distinct sample, nil without one. The profiler's own
-- time is left out.
local function each_function(shown, visit)
  shown:each_joined(function(parts, n, value)
    if shown.symbols:name(parts[n]).plain.text == PROFILER then return end
    for i = n, 1, -1 do
      if shown.symbols:name(parts[i]).plain.kind == "lua" then return visit(parts[i], value) end
    end
    visit(nil, value)
  end)
end

-- Returns the names of the Lua functions of profiles, by part.
local function names_of(profile)
  local shown, names = view_of(profile, cpu_event(profile)), {}
  each_function(shown, function(part)
    if part then names[part] = shown.symbols:name(part).plain.text end
  end)
  return names
end

-- Returns, for each of two lists of paths, the common name of a function by its own name in a profile.
local function common_names(paths_a, paths_b)
  local a, b = reader.read_all(paths_a), reader.read_all(paths_b)
  local before_a, before_b = names_of(a), names_of(b)
  samefuncs.match(a, b)
  local function changed(before, after)
    local map = {}
    for part, name in pairs(before) do map[name] = after[part] end
    return map
  end
  return changed(before_a, names_of(a)), changed(before_b, names_of(b))
end

-- Returns the time of the functions of a profile in milliseconds, by their names in it.
local function times_of(profile, event)
  local shown, times = view_of(profile, event), {}
  each_function(shown, function(part, value)
    local name = part and shown.symbols:name(part).plain.text or NO_LUA
    times[name] = (times[name] or 0) + value / 1000
  end)
  return times, shown:room_text()
end

-- Returns the time of functions, by their common names and numbers of runs.
local function by_name(runs, names)
  local all = {}
  for number, one in ipairs(runs) do
    for own, time in pairs(one.times) do
      local name = names[own] or own
      all[name] = all[name] or {}
      all[name][number] = (all[name][number] or 0) + time
    end
  end
  return all
end

-- Returns the functions with some samples, the largest changes first. a, b: times by name and number of the run.
local function compare_functions(a, b, n, tick)
  local list, seen = {}, {}
  local function add(name)
    if seen[name] then return end
    seen[name] = true
    local before, after, sum = {}, {}, 0
    for i = 1, n do
      before[i], after[i] = a[name] and a[name][i] or 0, b[name] and b[name][i] or 0
      sum = sum + before[i] + after[i]
    end
    if sum < 2 * n * LEAST_SAMPLES * tick then return end
    local one = comparison.one(before, after, tick)
    one.name = name
    list[#list + 1] = one
  end
  for name in pairs(a) do add(name) end
  for name in pairs(b) do add(name) end
  comparison.mark(list)
  sort(list, function(x, y)
    if x.marked ~= y.marked then return x.marked end
    local p, q = math.abs(x.difference), math.abs(y.difference)
    if p ~= q then return p > q end
    return x.name < y.name
  end)
  return list
end

-- -- Warnings ------------------------------------------------------------------

local function processors()
  local n = 0
  local list = (files.text("/proc/self/status") or ""):match("\nCpus_allowed_list:%s*(%S+)") or ""
  for first, last in list:gmatch("(%d+)%-?(%d*)") do
    n = n + (tonumber(last) or tonumber(first)) - tonumber(first) + 1
  end
  return math.max(n, 1)
end

-- Returns how a run was recorded: texts by what they are of, in pairs.
local function ways(profile, e)
  local meta, states, samples = profile.meta, profile:states(), profile:totals()
  local share = samples > 0 and (states[G.SPF_VMST_TRACE] or 0) / samples or 0
  local period = #e.periods == 1 and e.periods[1] or 0
  return {
    { "rates", period > 0 and ("%.6g samples a second"):format(1e9 / period) or "" },
    { "clocks", table.concat(e.used, ",") }, { "machines", meta.host or "" }, { "LuaJITs", meta.base or "" },
    { "modes", meta.mode or "" },
    { "JITs", share > COMPILED_SHARE and "with compiled code" or
      share == 0 and samples >= COMPILED_SAMPLES and "without compiled code" or "" },
  }
end

-- Returns what a run lacks, or nil.
local function lack_of(profile)
  local lost = selfreport.lost(profile)
  local lost_text = lost > 0 and "lost " .. text.plural(lost, "sample") or nil
  return profile:problem_text() or headline.size_limit(profile) or lost_text
end

-- Returns sentences on what makes runs incomparable. all: runs.
local function warnings(all)
  local list, values, bad = {}, {}, {}
  local least, most
  for _, one in ipairs(all) do
    for i, way in ipairs(one.ways) do
      local known = values[i] or { what = way[1] }
      values[i] = known
      if way[2] ~= "" and not known[way[2]] then
	known[way[2]], known[#known + 1] = true, text.clean(way[2])
      end
    end
    if one.lack then bad[#bad + 1] = ("%s: %s"):format(one.name, one.lack) end
    if one.load then least, most = math.min(least or one.load, one.load), math.max(most or 0, one.load) end
  end
  for _, known in ipairs(values) do
    if #known > 1 then
      list[#list + 1] = ("the runs have different %s: %s"):format(known.what, text.listed(known, 1, NAMED))
    end
  end
  local n = processors()
  if most and most > n then
    list[#list + 1] = ("the machine was busy: load %.1f to %.1f on %s; its times vary more"):format(least, most,
      text.plural(n, "processor"))
  end
  for i = 1, math.min(#bad, NAMED) do list[#list + 1] = text.clean(bad[i]) end
  if #bad > NAMED then list[#list + 1] = ("%d more runs lack something"):format(#bad - NAMED) end
  return list
end

-- -- API -----------------------------------------------------------------------

-- Reads a run, and keeps what a comparison needs. Returns nil, or a message.
local function read(one, name)
  local profile, err, which = reader.read_all(one.paths)
  if not profile then return ("%s: %s"):format(which, err) end
  local event = cpu_event(profile)
  -- The clock of the process has all of the profiler's time, that of the profile the part in its threads.
  local inside, own_thread = selfreport.own_seconds(profile)
  one.cpu = one.cpu and one.cpu - inside - own_thread or (selfreport.cpu_time(profile) or 0) - inside
  if not event or one.cpu <= 0 then return ("%s has no CPU time; nothing is compared"):format(name) end
  one.wall = one.wall or headline.real_time(profile)
  one.name, one.ways = name, ways(profile, event)
  one.tick = event.weight / 1000 / math.max(event.samples, 1)
  local times, room = times_of(profile, event)
  one.times = times
  one.lack = lack_of(profile) or room
end

local function field(list, key)
  local out = {}
  for i, one in ipairs(list) do out[i] = one[key] end
  return out
end

-- Reads all runs of the sides. Returns a list of them, their tick in milliseconds, and the paths by side; or nil and a
-- message, nil if is_stopped() told to end.
local function read_all(runs, is_stopped)
  local all, tick, paths = {}, 0, {}
  for _, side in ipairs { "a", "b" } do
    paths[side] = {}
    for i, one in ipairs(runs[side]) do
      if is_stopped and is_stopped() then return nil end
      local name = #runs.b > 0 and ("run %d of %s"):format(i, side:upper()) or ("run %d"):format(i)
      local err = read(one, runs.are_files and one.paths[1] or name)
      if err then return nil, err end
      all[#all + 1], tick = one, tick + one.tick
      for _, path in ipairs(one.paths) do table.insert(paths[side], path) end
    end
  end
  return all, tick / #all, paths
end

-- Sums up runs of one program: runs.a as of new(). Returns the same, but cpu, wall and functions are means with their
-- intervals, and there is no p; or nil and a message.
function comparedruns.of_one(runs, is_stopped)
  local all, tick = read_all(runs, is_stopped)
  if not all then return nil, tick end
  local times, functions, n = {}, {}, #all
  for number, one in ipairs(all) do
    for name, time in pairs(one.times) do
      times[name] = times[name] or {}
      times[name][number] = time
    end
  end
  for name, list in pairs(times) do
    local sum = 0
    for i = 1, n do list[i] = list[i] or 0; sum = sum + list[i] end
    if sum >= n * LEAST_SAMPLES * tick then
      local one = comparison.mean(list, tick)
      one.name, functions[#functions + 1] = name, one
    end
  end
  sort(functions, function(x, y)
    if x.mean ~= y.mean then return x.mean > y.mean end
    return x.name < y.name
  end)
  local wall = field(all, "wall")
  return { a = runs.a, warnings = warnings(all), functions = functions, cpu = comparison.mean(field(all, "cpu"), 0),
	   wall = #wall == n and comparison.mean(wall, 0) or nil }
end

-- Compares runs: a and b, lists of { paths=, cpu=, wall=, load= }; without times, those of the profiles count.
-- is_stopped(): whether to end without a result; nil: never. Returns
--   cpu, wall     as of sysprof.model.comparison, in seconds; wall may be nil
--   functions     the same in milliseconds, with name and marked; those that changed first, then by difference
--   warnings      a list of sentences
--   a, b          lists of the runs
-- or nil and a message.
function comparedruns.new(runs, is_stopped)
  local n = #runs.a
  local all, tick, paths = read_all(runs, is_stopped)
  if not all then return nil, tick end
  local found = { a = runs.a, b = runs.b, warnings = warnings(all) }
  found.cpu = comparison.total(field(runs.a, "cpu"), field(runs.b, "cpu"))
  local wall_a, wall_b = field(runs.a, "wall"), field(runs.b, "wall")
  if #wall_a == n and #wall_b == n then found.wall = comparison.total(wall_a, wall_b) end
  local names_a, names_b = common_names(paths.a, paths.b)
  found.functions = compare_functions(by_name(runs.a, names_a), by_name(runs.b, names_b), n, tick)
  return found
end

return comparedruns
