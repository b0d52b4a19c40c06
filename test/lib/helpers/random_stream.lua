----------------------------------------------------------------------------
-- Random streams of samples with random stacks, and their naive profiles.
--
-- See random_stack.lua and naive_profile.lua.
----------------------------------------------------------------------------

local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local naive = require("naive_profile")
local random_stack = require("random_stack")
local F = B.F

local pick, items_of, joined = random_stack.pick, random_stack.items_of, random_stack.joined
local LUA, BUILTINS, CODE = random_stack.LUA, random_stack.BUILTINS, random_stack.CODE
local CLOSURES = random_stack.CLOSURES
local WORK, PROGRAM, LIBRARIES = random_stack.WORK, random_stack.PROGRAM, random_stack.LIBRARIES
local OTHER_LIBRARIES = { "uv", "libc" }	-- Besides "library".

local random_stream = {}

-- -- Stream ----------------------------------------------------------------

-- A layout has the numbers and addresses of a process. Those of two processes often mean
-- different things.
local function random_layout(random, pid)
  local program = random(4)
  local layout = { fid = random(0, 3), ffid = random(0, 2), closure = random(0, 2), pid = tostring(pid), build = random(2),
		   program = 0x10000 * program, library = 0x10000 * ((program + random(0, 2)) % 4 + 1) }
  -- The libraries of loops stand in any order behind these.
  local order = random(2)
  for i, name in ipairs(OTHER_LIBRARIES) do
    layout[name] = 0x10000 * (4 + (order == 1 and i or #OTHER_LIBRARIES + 1 - i))
  end
  return layout
end

local function address(layout, code, offset)
  return layout[code.of] + code.at + offset
end

local ENCODE = {
  lua = function(l, f, line) return F.lfunc(l.fid + f, line) end,
  builtin = function(l, id) return F.ffunc(l.ffid + id) end,
  cfunc = function(l, code, closure)
    local addr = address(l, CODE[code], 0)
    return closure == 0 and F.cfunc(addr) or F.closure(addr, l.closure + closure)
  end,
  host = function(l, code, offset) return F.host(address(l, CODE[code], offset)) end,
  trace = function(_, number, covered, loop) return F.trace(number, covered, loop) end,
  work = function(_, id) return F.work(WORK[id][1], WORK[id][2]) end,
  wait = function(_, what, arg) return F.work(what, arg) end,
  cut = function(_, n, bounds) return F.cut(n, bounds) end,
  broken = function(_, reason) return F.broken(reason) end,
  vm = function() return F.vm end,
  cbound = function() return F.cbound end,
  resume = function() return F.resume end,
}

-- Returns the frames of a side of a stack.
local function side_of(recipe, host)
  local frames = {}
  for _, item in ipairs(items_of(recipe)) do
    if item.frame and (item.host or false) == host then frames[#frames + 1] = item.frame end
  end
  return frames
end

local function frame_key(frame)
  local list = {}
  for i, v in ipairs(frame) do list[i] = tostring(v) end
  return table.concat(list, " ")
end

-- Encodes the frames from first on. Some are differences to the nearest one rootward.
local function encoded(random, layout, frames, first)
  local out, near = {}, {}
  for i, frame in ipairs(frames) do
    local kind, before = frame[1], near[frame[1]]
    local bytes = ENCODE[kind](layout, frame[2], frame[3], frame[4])
    if before and random(2) == 1 and kind == "host" then
      bytes = F.near(address(layout, CODE[frame[2]], frame[3]) -
		     address(layout, CODE[before[2]], before[3]))
    elseif before and random(2) == 1 and kind == "lua" and before[2] == frame[2] then
      bytes = F.lsame(frame[3] - before[3])
    end
    near[kind] = frame
    if i >= first then out[#out + 1] = bytes end
  end
  return out
end

-- Encodes recursion by repeats.
local function shortened(layout, frames)
  local keys, out, i = {}, {}, 1
  for k, frame in ipairs(frames) do keys[k] = frame_key(frame) end
  local function follows_again(at, size)
    return at + 2 * size - 1 <= #frames and
      table.concat(keys, ",", at, at + size - 1) == table.concat(keys, ",", at + size, at + 2 * size - 1)
  end
  while i <= #frames do
    local times, group = 0, 1
    for size = 1, 8 do
      local n = 0
      while follows_again(i + n * size, size) do n = n + 1 end
      if n * size > times * group and n * size >= 2 then times, group = n, size end
    end
    for k = i, i + group - 1 do
      local frame = frames[k]
      out[#out + 1] = ENCODE[frame[1]](layout, frame[2], frame[3], frame[4])
    end
    if times > 0 then out[#out + 1] = F.again(times, group) end
    i = i + group + times * group
  end
  return out
end

-- A writer of a stream: { b, random, layout, stacks, next_id }. stacks: those that the chunk
-- knows.

-- Defines a side of a stack, or finds it. It may stand on another stack, of this side or not.
local function define(w, frames)
  if #frames == 0 then return 0 end
  for _, stack in ipairs(w.stacks) do
    if stack.frames == frames and w.random(8) > 1 then return stack.id end
  end
  w.next_id = w.next_id + 1
  local base = #w.stacks > 0 and w.random(4) > 1 and pick(w.random, w.stacks)
  local is_deep, keep = #frames > 100, 0
  while base and not base.is_deep and not is_deep and base.frames[keep + 1] and frames[keep + 1] and
	frame_key(base.frames[keep + 1]) == frame_key(frames[keep + 1]) do
    keep = keep + 1
  end
  if keep > 0 then
    keep = w.random(keep)
    w.b:stack(w.next_id, encoded(w.random, w.layout, frames, keep + 1), keep, base.id)
  else
    w.b:stack(w.next_id, is_deep and shortened(w.layout, frames) or
			 encoded(w.random, w.layout, frames, 1))
  end
  table.insert(w.stacks, { id = w.next_id, frames = frames, is_deep = is_deep })
  return w.next_id
end

local function define_names(w)
  local b, l = w.b, w.layout
  for i, name in ipairs(BUILTINS) do
    if w.used["builtin " .. i] then b:ffunc(l.ffid + i, name) end
  end
  for i, code in ipairs(CODE) do
    for offset = 0, (code.name or code.starts) and 8 or -1, 8 do
      if w.used[("host %d %d"):format(i, offset)] then
	b:hsym(address(l, code, offset), address(l, code, 0), code.name or "")
      end
    end
  end
end

local function define_closures(w)
  for code, names in pairs(CLOSURES) do
    for closure, name in pairs(names) do
      if w.used[("cfunc %d %d"):format(code, closure)] or closure == 0 then
	w.b:cfunc(address(w.layout, CODE[code], 0), closure == 0 and 0 or w.layout.closure + closure, name)
      end
    end
  end
end

local function define_functions(w)
  for i, f in ipairs(LUA) do
    if w.used["lua " .. i] then w.b:lfunc(w.layout.fid + i, f.first, f.chunk, f.name, f.last, f.path) end
  end
end

-- Remembers what a profile has to define: also where the C functions begin that Lua calls.
local function use(w, frames)
  for _, frame in ipairs(frames) do
    local kind, id = frame[1], frame[2]
    if kind == "lua" or kind == "builtin" then w.used[kind .. " " .. id] = true end
    if kind == "host" then w.used[("host %d %d"):format(id, frame[3])] = true end
    if kind == "cfunc" then
      w.used[("host %d 0"):format(id)], w.used[("cfunc %d %d"):format(id, frame[3])] = true, true
    end
  end
end

local FIELD = { COUNT = G.SPF_FIELD_COUNT, TEXT = G.SPF_FIELD_TEXT, NUMBER = G.SPF_FIELD_NUMBER,
		THING = G.SPF_FIELD_THING, SIZE = G.SPF_FIELD_SIZE, CYCLE = G.SPF_FIELD_CYCLE }

-- second: name of the first COUNT. thing: of the first THING. period: 0 if it has none.
local EVENTS = {
  { name = "cpu", unit = "us", period = 1000000 },
  { name = "page-faults", unit = "count", period = 10, fields = { { FIELD.NUMBER, "address" } } },
  { name = "cycles:u", unit = "count", period = 500 },
  { name = "alloc", unit = "bytes", period = 4096, second = "objects", thing = "block",
    fields = { { FIELD.NUMBER, "size" }, { FIELD.COUNT, "objects" }, { FIELD.COUNT, "blocks" },
	       { FIELD.THING, "block" }, { FIELD.THING, "other" } } },
  { name = "lock-wait", unit = "ns", period = 1000000 },
  { name = "offcpu", unit = "ns", period = 0, second = "waits", fields = { { FIELD.COUNT, "waits" } } },
  { name = "coroutine-wait", unit = "ns", period = 0, second = "waits",
    fields = { { FIELD.NUMBER, "other" }, { FIELD.COUNT, "waits" } } },
  { name = "memory", unit = "bytes", period = 127, second = "objects", thing = "live",
    fields = { { FIELD.THING, "live" }, { FIELD.CYCLE, "cycle" }, { FIELD.SIZE, "size" },
	       { FIELD.COUNT, "objects" }, { FIELD.SIZE, "other" } } },
}
local UNITS = { us = G.SPF_UNIT_US, count = G.SPF_UNIT_COUNT, bytes = G.SPF_UNIT_BYTES, ns = G.SPF_UNIT_NS }
local THREADS = { { tid = 77, name = "main" }, { tid = 78 }, { tid = 79, name = "a;b" } }

-- Sets of labels by id. Two of them are the same for users.
local LABELS = {
  [0] = {}, [1] = { { "route", "/a" } }, [31] = { { "route", "/b" }, { "tenant", "x;=y" } },
  [5000] = { { "tenant", "x;=y" }, { "route", "/b" } }, [7] = {},
}

local function begin_stream(w)
  local b, asked = w.b, {}
  b:meta("pid", w.layout.pid)
  for i, e in ipairs(w.events) do asked[i] = e.name end
  b:meta("clock", table.concat(asked, ",") .. "/period=5/")
  if w.events.wall then b:meta("wall", table.concat(w.events.wall, ",")) end
  for i, e in ipairs(w.events) do b:event(i - 1, i == 1 and "used" or e.name, UNITS[e.unit], e.period, e.fields) end
  b:module(w.layout.program, w.layout.program + 0x8000, w.layout.program, PROGRAM, "\1" .. w.layout.build)
  for name, path in pairs(LIBRARIES) do
    b:module(w.layout[name], w.layout[name] + 0x8000, w.layout[name], path)
  end
  for _, thread in ipairs(THREADS) do
    if thread.name then b:thread(thread.tid, thread.name) end
  end
end

local MARKS = { dump = G.SPF_MARK_DUMP, labels = G.SPF_MARK_LABELS, unknown = 12 }

local function add_mark(w)
  local name, time = pick(w.random, { "dump", "labels", "unknown" }), w.random(0, 50000)
  w.b:mark(time, MARKS[name], 1)
  table.insert(w.marks, { time = time, kind = name })
end

-- Ends things of an event; most events have none, and most things are not there.
local function add_ends(w, event)
  local list, how = {}, w.random(0, 2)
  for i = 1, w.random(0, 3) do
    list[i] = { pick(w.random, { 1, 3, 127, 128, 5e6 }), w.random(0, 3) }
    table.insert(w.story, { event = w.events[event].name, ends = list[i][1],
			    gone = how == G.SPF_ENDED_GONE, age = list[i][2] })
  end
  w.b:ended(event - 1, how, list)
end

-- Whether an event is a part of the sum that the session asks for.
local function in_sum(w, event)
  for _, name in ipairs(w.events.wall or {}) do
    if name == event.name then return event.unit == "us" or event.unit == "ns" end
  end
  return false
end

-- Whether the leaf of the Lua side of a sample is some work.
local function has_leaf(sample, work, arg)
  local wait = sample.lua and sample.recipe.wait
  return wait and wait[1] == work and (not arg or wait[2] == arg) or false
end

-- Adds samples of a thread.
local function add_samples(w, tid, time)
  local random, last = w.random, {}
  for i = 1, #w.events do last[i] = time end
  for _ = 1, random(20) do
    if random(4) == 1 then
      local id = pick(random, { 0, 1, 7, 31, 5000 })
      w.b:labelled(id)
      w.labels = LABELS[id]
    end
    -- Often the next one: these belong together.
    w.at = random(5) > 1 and w.at % #w.recipes + 1 or random(#w.recipes)
    local recipe, sides, event = w.recipes[w.at], random(20), random(#w.events)
    local sides_of = { lua = sides > 3, host = sides > 1 and sides < 18 }
    local lua = sides_of.lua and define(w, w.lua_side[recipe]) or 0
    local host = sides_of.host and define(w, w.host_side[recipe]) or 0
    if random(10) == 1 then add_mark(w) end
    if random(4) == 1 then add_ends(w, random(#w.events)) end
    local state, n, e = random(0, G.SPF_VMST__MAX - 1), random(3), w.events[event]
    local weight = pick(random, { 0, 0, 1, 999, 1000, 60000, 2^24 + 1, 3e9, -1 })
    if weight < 0 then weight = nil end
    local fields, named = {}, {}
    for i, field in ipairs(e.fields or {}) do
      fields[i] = pick(random, { 0, 1, 3, 127, 128, 5e6 })
      named[field[2]] = fields[i]
    end
    -- A stack that nobody has seen.
    local is_unseen = host == 0 and lua ~= 0 and recipe.wait and #w.lua_side[recipe] == 1
    local second, thing = named[e.second], named[e.thing]
    w.b:sample(lua, host, n, state, weight, event - 1, fields)
    for _ = 1, n do
      time = time + 1000
      local is_time = e.unit == "us" or e.period == 0
      local usual = is_time and time - last[event] or e.period
      last[event] = time
      local s = { time = time, weight = weight or usual, second = second, second_name = e.second, labels = w.labels, event = e.name, tid = tid,
	pid = w.layout.pid, state = is_unseen and "UNKNOWN" or w.state_names[state], recipe = recipe, lua = sides_of.lua,
	host = sides_of.host, unit = e.unit, in_sum = in_sum(w, e), session = w.session }
      s.runnable = has_leaf(s, G.SPF_WORK_READY)
      s.is_lost = has_leaf(s, G.SPF_WORK_LOST) or has_leaf(s, G.SPF_WORK_UNKEPT)
      s.is_unplaced = has_leaf(s, G.SPF_WORK_UNKEPT) or has_leaf(s, G.SPF_WORK_OTHERS) or
		      has_leaf(s, G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK)
      s.is_many = s.runnable or s.is_lost or has_leaf(s, G.SPF_WORK_SHORT) or has_leaf(s, G.SPF_WORK_OTHERS)
      table.insert(w.samples, s)
      if thing and thing > 0 then
	local has_size = e.name == "memory"
	table.insert(w.story, { event = e.name, begins = thing, sample = w.samples[#w.samples],
				size = has_size and named.size, cycle = has_size and named.cycle })
      end
    end
  end
end

-- Each thread's samples have times of their own, which may be those of other threads.
local function add_chunks(w, tids)
  local random, names_at_end = w.random, w.random(2) == 1
  local chunks, far = random(4), pick(random, { 1, 1, 30, 5000 })
  for chunk = 1, chunks do
    for part = 1, random(3) do
      local tid, time = pick(random, tids), 1000 * far * random(0, 40)
      w.b:context(tid, time, random(2) == 1 and 990 or nil)
      if part == 1 then
	if chunk == 1 then begin_stream(w) end
	w.labels = LABELS[0]
	for id, set in pairs(LABELS) do
	  if id > 0 then w.b:labels(id, set) end
	end
	define_functions(w)
	if chunk == 1 and not names_at_end then
	  define_names(w)
	  define_closures(w)
	end
      end
      add_samples(w, tid, time)
    end
    if chunk == chunks and names_at_end then
      define_names(w)
      define_closures(w)
    end
    if chunk < chunks then
      local keep = random(2) == 1
      w.b:flush(keep)
      if not keep then w.stacks = {} end
    end
  end
end

local state_names = {}
for name, value in pairs(G) do
  local state = name:match("^SPF_VMST_(%u+)$")
  if state then state_names[value] = state end
end

-- Returns all recipes, or those without a function of one of them.
local function some(random, recipes)
  local list, not_this = {}, pick(random, pick(random, recipes)) or {}
  for _, recipe in ipairs(recipes) do
    local has_it = false
    for _, step in ipairs(recipe) do
      has_it = has_it or step.f and step.f == not_this.f or step.id and step.id == not_this.id
    end
    if not has_it then list[#list + 1] = recipe end
  end
  return random(2) == 1 and #list > 0 and list or recipes
end

-- Adds the sum before the first of its parts. Returns it.
local function add_sum(w, list)
  local sum = { name = "wall", unit = "ns", parts = {}, sessions = {} }
  local wall_us = pick(w.random, { 0, 5000000, 3e12, -1, -1 })
  if wall_us < 0 then wall_us = nil else w.b:counters { { G.SPF_COUNTER_WALL_US, wall_us } } end
  sum.sessions[1], list[#list + 1] = { pid = w.layout.pid, wall_us = wall_us }, sum
  return sum
end

-- Adds the events that the profile has beside those that were asked for: the sum, and what is left of
-- things. Returns the list of all.
local function all_events(w)
  local list, sum = {}, nil
  for i, e in ipairs(w.events) do
    if in_sum(w, e) then
      sum = sum or add_sum(w, list)
      table.insert(sum.parts, e.name)
    end
    list[#list + 1] = e
    if e.thing then
      local left = { name = e.thing, unit = e.unit, second = e.second, left_of = e.name, period = e.period,
		     cycles = 0 }
      local longer, cycles = pick(w.random, { 0, 0, 300, 5000 }), pick(w.random, { 0, 1, 4, 200, 6e6 })
      if longer > 0 then left.period = longer end
      left.cycles = cycles
      local first = G.SPF_COUNTER_EVENT + (i - 1) * G.SPF_COUNTER_EVENT_STEP
      w.b:counters { { first + G.SPF_EVENT_LEFT_PERIOD, longer }, { first + G.SPF_EVENT_CYCLES, cycles } }
      list[#list + 1] = left
      for _, s in ipairs(naive.left(w.story, left)) do table.insert(w.samples, s) end
    end
  end
  return list
end

-- Returns a stream of samples of the recipes, and its naive profile. events: a list; its field wall lists
-- the names of a sum's parts.
local function random_profile(random, recipes, layout, events, session)
  local w = { b = B.new(session), random = random, layout = layout, events = events, stacks = {},
	      next_id = 0, at = 1, recipes = some(random, recipes), samples = {}, story = {}, session = {},
	      marks = {}, lua_side = {}, host_side = {}, used = {}, state_names = state_names }
  for _, recipe in ipairs(w.recipes) do
    w.lua_side[recipe], w.host_side[recipe] = side_of(recipe, false), side_of(recipe, true)
    use(w, w.lua_side[recipe])
    use(w, w.host_side[recipe])
  end
  local tids, names = {}, {}
  for i = 1, random(#THREADS) do tids[i] = THREADS[i].tid end
  add_chunks(w, tids)
  for _, thread in ipairs(THREADS) do
    names[naive.thread_key { tid = thread.tid, pid = layout.pid }] = thread.name
  end
  local all = all_events(w)
  return w.b:finish(), { samples = w.samples, stories = { w.story }, marks = w.marks, events = all, names = names, stack = joined,
			 has_sources = true }
end

random_stream.random_layout, random_stream.random_profile = random_layout, random_profile
random_stream.EVENTS, random_stream.pick = EVENTS, pick

return random_stream
