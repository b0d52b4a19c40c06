----------------------------------------------------------------------------
-- Random joined stacks, and the two sides that each is made of.
--
-- A stack is made joined first, and then split into its sides, so a model of it joins nothing.
-- Few functions make up all stacks: these collide, begin alike, and end alike. A seed gives the
-- same stacks on any machine.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local random_waits = require("random_waits")

local random_stack = {}

-- Returns a function random(a, b), or random(b) from 1 on.
local function random_of(seed)
  local state = (seed * 48271 + 11) % 2147483647
  return function(a, b)
    state = (state * 16807) % 2147483647
    if not b then a, b = 1, a end
    return a + math.floor(state / 64) % (b - a + 1)
  end
end

local function pick(random, list)
  return list[random(math.max(#list, 1))]
end

-- -- Functions -------------------------------------------------------------

-- Lua functions. shown: the name, lined: the name with a line. Some look the same.
local LUA = {
  { chunk = "@a.lua", first = 0, last = 40, name = "", shown = "main chunk (a.lua)",
    lined = "main chunk (a.lua:%s)" },
  { chunk = "@a.lua", first = 3, last = 9, name = "f", shown = "f (a.lua:3)",
    lined = "f (a.lua:%s)" },
  { chunk = "@a.lua", first = 3, last = 9, name = "f", shown = "f (a.lua:3)",
    lined = "f (a.lua:%s)" },
  { chunk = "=a.lua", first = 3, last = 9, name = "f", shown = "f (a.lua:3)",
    lined = "f (a.lua:%s)" },
  { chunk = "@b.lua", first = 3, last = 9, name = "f", shown = "f (b.lua:3)",
    lined = "f (b.lua:%s)" },
  { chunk = "@a.lua", first = 12, last = 20, name = "g", path = "m.k;", shown = "g (a.lua:12) [m.k;]",
    lined = "g (a.lua:%s) [m.k;]" },
  { chunk = "@b.lua", first = 20, last = 29, name = "", shown = "b.lua:20", lined = "b.lua:%s" },
  { chunk = "return 1", first = 1, last = 1, name = "h;", shown = 'h; ([string "return 1"]:1)',
    lined = 'h; ([string "return 1"]:%s)' },
}

local BUILTINS = { "string.gsub", "pcall", "x;y", "x:y", "cdata.__call" }

-- C code: at is where the symbol begins, in the program or in a library. starts: without a name
-- it is known where the function begins. Two functions are
-- called call. Lua calls the last three of the first ones as C functions. Then come event loops, and what they
-- call until they wait.
local CODE = {
  { at = 0x1000, name = "main" }, { at = 0x2000, name = "call" }, { at = 0x3000, name = "call" },
  { at = 0x4000, name = "lj_gc_step", kind = "vm" }, { at = 0x1000, name = "leaf", of = "library" },
  { at = 0x2000, of = "library", starts = true }, { at = 0x5000, name = "cf1" }, { at = 0x6000, name = "cf2" },
  { at = 0x7000, name = "cf3" },
  { at = 0x1000, name = "uv_run", of = "uv" }, { at = 0x2000, name = "uv__io_poll.isra.0", of = "uv" },
  { at = 0x1800, name = "ngx_epoll_process_events" }, { at = 0x3000, name = "ev_run", of = "library" },
  { at = 0x2800, name = "loop_poll_events" }, { at = 0x3800, name = "my_loop" },
  { at = 0x3000, name = "uv_part", of = "uv" }, { at = 0x4000, of = "uv" }, { at = 0x4800 },
  { at = 0x1000, name = "epoll_wait", of = "libc" }, { at = 0x2000, name = "getaddrinfo", of = "libc" },
  { at = 0x3000, of = "libc" }, { at = 0x5800, name = "__epoll_pwait.part.0" },
  { at = 0x4000, name = "__syscall_cancel", of = "library" },
}
local HOSTS, LONE, LOOPS, CALLEES = 6, 9, 10, 16	-- Numbers of the last one and of the first ones.

-- Lua's names of C functions, by number in CODE and of the closure. 0: of closures without a name.
local CLOSURES = {
  [7] = { [1] = "cjson.decode", [2] = "x;y" },
  [8] = { [0] = "m.f|m.g", [1] = "cjson.decode" },
  [9] = { [1] = "obj:send", [3] = "obj:send" },
}
local CLOSURES_MAX = 3

local PROGRAM = "/usr/bin/program"
local LIBRARIES = { library = "/usr/lib/lib x.so.1", uv = "/usr/lib/libuv.so.1", libc = "/usr/lib/libc.so.6" }
for _, code in ipairs(CODE) do code.of = code.of or "program" end

local WORK = {
  { G.SPF_WORK_GC, G.SPF_GC_SWEEP, "[gc: sweep]" },
  { G.SPF_WORK_GC, G.SPF_GC_ATOMIC, "[gc: atomic]" },
  { G.SPF_WORK_RECORD, 0, "[record trace]" },
  { G.SPF_WORK_EXIT, 12 * 65536 + 3, "[side exit 3 of trace 12]" },
}

local function lua_part(step, o)
  local f, line = LUA[step.f], step.line > 0 and step.line or nil
  local file = f.chunk:match("^@(.*)")
  return { text = o.lines and f.lined:format(line or "?") or f.shown, kind = "lua",
	   compiled = step.compiled, file = file, chunk = f.chunk, first = f.first, line = line,
	   row = file or f.chunk:match("^=(.*)") or '[string "return 1"]' }
end

local function host_part(step)
  local code = CODE[step.code]
  local path = LIBRARIES[code.of] or PROGRAM
  local at = code.at + (code.starts and 0 or step.offset)
  return { text = code.name or ("%s+0x%x"):format(path:match("[^/]*$"), at), module = path,
	   does = code.name == "lj_gc_step" and G.SPF_WORK_GC or nil,
	   kind = not code.name and "unknown" or code.kind or "c", row = path }
end

local function closure_name(step)
  local names = CLOSURES[step.code]
  return names[step.closure] or names[0]
end

-- A C function that Lua calls, by Lua's name or by its symbol.
local function cfunc_part(step)
  local part, name = host_part { code = step.code, offset = 0 }, closure_name(step)
  if name then part.text, part.kind, part.symbol = name, "builtin", part.text end
  return part
end

local function marker(text)
  return { text = text, kind = "marker", row = text }
end

-- -- Recipes ---------------------------------------------------------------

-- A recipe is a list of steps, root first. kind of a step:
--   host           a C function
--   lua, builtin   what Lua runs; Lua that follows C is entered through a frame of the VM
--   c              a C function that Lua calls: on both sides; closure: number, or 0
--   lone           the same, but only on the Lua side
--   enter, resume  a call from C, and a resume of a coroutine, without C functions between
--   trace          the last frames of the run are compiled code
-- work: the VM's work at the leaf. wait: what the thread waits for (random_waits.lua), leafward of
-- all. fault: what is missing, see faults.

local function random_step(random, first, last)
  local n = random(first or 1, last or 24)
  if n <= 8 then
    local f = random(#LUA)
    return { kind = "lua", f = f, line = random(5) == 1 and 0 or LUA[f].first + random(2) }
  elseif n <= 13 then
    local code = random(4) == 1 and random(LOOPS, #CODE) or random(HOSTS)
    return { kind = "host", code = code, offset = random(0, 1) * 8 }
  elseif n <= 15 then
    return { kind = "builtin", id = random(#BUILTINS) }
  elseif n <= 18 then
    return { kind = n < 18 and "c" or "lone", offset = random(0, 1) * 8, closure = random(0, CLOSURES_MAX) }
  elseif n <= 21 then
    return { kind = n < 21 and "resume" or "enter" }
  end
  return { kind = "trace", number = random(9), covered = random(3), loop = random(2) == 1 }
end

local function copy(list, first, last)
  local out = {}
  for i = first or 1, last or #list do out[#out + 1] = list[i] end
  return out
end

-- Returns another step whose frame looks the same, or nearly.
local function twin(random, step)
  local s = {}
  for key, value in pairs(step) do s[key] = value end
  if s.line then s.line = LUA[s.f].first + random(3) end
  if s.f and LUA[s.f].shown == "f (a.lua:3)" then s.f = random(2, 4) end
  if s.offset then s.offset = 8 - s.offset end
  if s.closure then s.closure = CLOSURES_MAX - s.closure end
  if s.code == 2 or s.code == 3 then s.code = 5 - s.code end
  return s
end

local function step_of(random, few)
  local step = pick(random, few)
  return random(8) == 1 and twin(random, step) or step
end

-- Returns a stack that begins as another one.
local function derived(random, few, old)
  local n, way = #old, random(4)
  local at = random(0, n)
  local new = copy(old, 1, way == 1 and at or n)
  if way == 2 then
    for _ = 1, random(3) do new[#new + 1] = step_of(random, few) end
  elseif way == 3 and n > 0 then
    at = random(n)
    new[at] = twin(random, new[at])
  elseif way == 4 then
    new = copy(old, 1, at)
    for _ = 1, random(0, 2) do new[#new + 1] = step_of(random, few) end
    for i = random(at + 1, n + 1), n do new[#new + 1] = old[i] end
  end
  return new
end

-- Adds a long stack, a short one beside it, and one that goes on as the long one:
-- a;b;c;d, a;x, a;x;c;d.
local function add_siblings(random, few, list)
  local long = pick(random, list)
  if #long < 2 then return end
  local at = random(#long - 1)
  local short = copy(long, 1, at - 1)
  for _ = 1, random(4) == 1 and random(0, 2) or 1 do short[#short + 1] = step_of(random, few) end
  local longer = copy(short)
  for i = random(4) == 1 and random(#long) or at + 1, #long do longer[#longer + 1] = long[i] end
  for _, steps in ipairs { copy(long), short, longer } do list[#list + 1] = steps end
end

-- Returns a stack of hundreds of frames: recursion of a few steps.
local function deep(random, few, old)
  local new, group = copy(old, 1, random(0, #old)), {}
  for i = 1, random(3) do group[i] = step_of(random, few) end
  for _ = 1, random(60, 150) do
    for _, step in ipairs(group) do new[#new + 1] = step end
  end
  if random(2) == 1 then new[#new + 1] = step_of(random, few) end
  return new
end

-- Adds stacks that have nothing of Lua but what the thread waits for, with C functions or without.
local function add_bare_waits(random, waits, list)
  for hosts = 0, 2 do
    local steps = { wait = pick(random, waits) }
    for i = 1, hosts do steps[i] = { kind = "host", code = random(HOSTS), offset = 0 } end
    table.insert(list, random(#list), steps)
  end
end

-- Adds stacks of loops that wait, and of others that look alike: below any stack, a loop, or what it has
-- called back and another loop; then what passes the call on.
local function add_loops(random, few, list)
  for _ = 1, random(3, 8) do
    local steps = copy(pick(random, list), 1, random(0, 6))
    for _ = 1, random(2) do
      steps[#steps + 1] = { kind = "host", code = random(LOOPS, CALLEES - 1), offset = 0 }
      if random(3) == 1 then steps[#steps + 1] = step_of(random, few) end
    end
    for _ = 1, random(0, 3) do
      steps[#steps + 1] = { kind = "host", code = random(CALLEES, #CODE), offset = 8 * random(0, 1) }
      if random(8) == 1 then steps[#steps + 1] = step_of(random, few) end
    end
    steps.wait, steps.rooted = random_waits.of_events(random), random(4) > 1
    steps.fault = random(4) == 1 and random(1000) or nil
    table.insert(list, random(#list), steps)
  end
end

-- Returns a list of recipes, all made of few steps.
local function random_recipes(random)
  local few, list = { random_step(random, 1, 8), random_step(random, 9, 13) }, { {} }
  for i = 3, random(4, 8) do few[i] = random_step(random) end
  local count, depth = random(20, 50), pick(random, { 4, 8, 20 })
  while #list < count do
    local steps = {}
    if random(4) == 1 then
      for k = 1, random(6) do steps[k] = step_of(random, few) end
      list[#list + 1] = steps
    elseif random(3) == 1 then
      list[#list + 1] = copy(derived(random, few, pick(random, list)), 1, depth)
    else
      add_siblings(random, few, list)
    end
  end
  if random(4) == 1 then
    for i = 1, 2 do table.insert(list, random(#list), deep(random, few, list[i])) end
  end
  local rare, waits = pick(random, { 3, 20 }), random_waits.few(random)
  for _, steps in ipairs(list) do
    steps.wait = random(rare) == 1 and pick(random, waits) or nil
    steps.work = random(rare) == 1 and random(#WORK) or nil
    steps.fault = random(rare) == 1 and random(1000) or nil
    steps.rooted = random(rare) > 1
  end
  add_bare_waits(random, waits, list)
  add_loops(random, few, list)
  return list
end

-- -- From a recipe to a stack ----------------------------------------------

-- A segment of a stack is C functions (host), a frame of the VM (vm), and a run of Lua (lua) that
-- begins with a boundary (enter, resume). The last one may be C functions only.

local function new_segment(segments)
  local last = segments[#segments]
  local segment = { host = {}, lua = {} }
  segments[#segments + 1] = segment
  -- A C function that Lua has called stands on the host side, too.
  if last and last.called then
    segment.host[1] = { kind = "host", code = last.called.code, offset = last.called.offset,
		     called = last.called }
  end
  return segment
end

local function enter(segments, kind)
  local segment = segments[#segments]
  if segment.boundary then segment = new_segment(segments) end
  segment.boundary, segment.vm = kind, true
  return segment
end

local function add_lua(segments, step, calls)
  local segment = segments[#segments]
  if not segment.boundary or segment.closed then segment = enter(segments, "enter") end
  local own = { kind = step.kind, f = step.f, line = step.line, id = step.id, closure = step.closure }
  if step.kind == "c" or step.kind == "lone" then
    -- Two that follow each other differ. Behind a cut, one host frame would stand for both.
    own.code, own.offset, segment.closed = HOSTS + 1 + calls % 2, step.offset, true
    if step.kind == "c" then segment.called = own else own.code = LONE end
  end
  segment.lua[#segment.lua + 1], segment.has_frames = own, true
end

-- Returns the segments of a recipe.
local function segments_of(steps)
  local segments, calls = {}, 0
  new_segment(segments)
  for _, step in ipairs(steps) do
    local segment = segments[#segments]
    if step.kind == "host" then
      if segment.boundary then segment = new_segment(segments) end
      segment.host[#segment.host + 1] = step
    elseif step.kind == "enter" or step.kind == "resume" then
      enter(segments, step.kind)
    elseif step.kind == "trace" then
      local before = segment.lua[#segment.lua]
      if segment.boundary and not (before and before.kind == "trace") then
	segment.lua[#segment.lua + 1] = step
      end
    else
      add_lua(segments, step, calls)
      calls = calls + (step.kind == "c" and 1 or 0)
    end
  end
  if segments[#segments].called then new_segment(segments) end
  return segments
end

local function runs_of(segments)
  return #segments - (segments[#segments].boundary and 0 or 1)
end

-- Work is the leaf of the last run.
local function add_work(segments, work)
  local last = segments[runs_of(segments)]
  if work and last and last.has_frames then last.lua[#last.lua + 1] = { kind = "work", work = work } end
end

-- -- What is missing -------------------------------------------------------

local faults = {}

-- The host side is broken. The Lua frames of the first runs are there without their C
-- functions. silent: nothing says so, but the host side lacks frames of the VM.
local function lose_host(random, segments, silent)
  local runs = runs_of(segments)
  local k = random(0, runs)
  if silent and (k == 0 or not segments[k].has_frames) then return end
  local next_segment = segments[k + 1] or new_segment(segments)
  if silent then
    local left = 0
    for i = k + 1, #segments do left = left + #segments[i].host + (segments[i].vm and 1 or 0) end
    if left < 2 then return end
  end
  for i = 1, k do segments[i].host, segments[i].vm = {}, false end
  table.insert(next_segment.host, 1, { kind = silent and "early" or "host_broken" })
end

faults[1] = function(random, segments) lose_host(random, segments, false) end
faults[2] = function(random, segments) lose_host(random, segments, true) end

-- Frames of the Lua side are missing, with b boundaries among them: the runs between are empty.
local function lose_lua(random, segments, kind)
  local runs = runs_of(segments)
  if runs == 0 then return end
  local j = random(runs)
  local b, run = random(3) == 1 and j or random(0, j), segments[j]
  local from = random(0, #run.lua)
  local to = b == 0 and random(0, from) or 0
  local left = copy(run.lua, 1, to)
  left[#left + 1] = { kind = kind, bounds = b }
  for i = from + 1, #run.lua do left[#left + 1] = run.lua[i] end
  run.lua = left
  for i = j - b + 1, j do
    segments[i].boundary = "none"
    if i < j then segments[i].lua = {} end
  end
  if b > 0 and b < j then
    local before = segments[j - b]
    before.lua = copy(before.lua, 1, random(0, #before.lua))
  end
  segments[1].rooted = true
end

faults[3] = function(random, segments) lose_lua(random, segments, "lua_cut") end
faults[4] = function(random, segments) lose_lua(random, segments, "lua_broken") end

-- Frames of the host side are missing, with v frames of the VM among them.
faults[5] = function(random, segments)
  local runs = runs_of(segments)
  local v = random(0, runs)
  local m = random(0, runs - v)
  local first = segments[m + 1] or new_segment(segments)
  local host, last = first.host, segments[m + v + 1] or new_segment(segments)
  local p = random(0, #host)
  local rest = copy(last.host, random(v == 0 and p + 1 or 1, #last.host + 1))
  for i = m + 1, m + v do segments[i].host, segments[i].vm = {}, false end
  first.host = copy(host, 1, p)
  table.insert(first.host, { kind = "host_cut", vms = v })
  if v > 0 then
    last.host = rest
  else
    for _, step in ipairs(rest) do table.insert(first.host, step) end
  end
end

-- Stacks of other modes, and of threads outside of the VM. They use a few steps only.
local function host_step(random)
  return { kind = "host", code = random(HOSTS), offset = 0 }
end

faults[6] = function(random)	-- The mode LEAF.
  local lua = { { kind = "lua", f = random(#LUA), line = 3 } }
  if random(2) == 1 then lua[2] = { kind = "trace", number = 1, covered = 1 } end
  if random(2) == 1 then lua[#lua + 1] = { kind = "work", work = random(#WORK) } end
  return { { host = {}, lua = lua, boundary = "none" }, { host = { host_step(random) }, lua = {} } }
end

faults[7] = function(random)	-- Work for C code.
  return { { host = { host_step(random), host_step(random) }, lua = {} },
	   { host = {}, lua = { { kind = "work", work = random(#WORK) } },
	     boundary = random(2) == 1 and "enter" or "none" } }
end

faults[8] = function(random)	-- Nothing is missing outside of the VM.
  return { { host = { host_step(random) }, lua = { { kind = "outside" } }, boundary = "none" } }
end

-- -- Sides and the joined stack --------------------------------------------

-- An item of a joined stack: the frame that its side has there, if any, and what is shown.
-- side: "lua", "host", "both" (shown if one of them is); "joined": only if both are shown;
-- "alone": only if the host side is not.

local LUA_ITEM = {
  lua = function(s) return { "lua", s.f, s.line } end,
  builtin = function(s) return { "builtin", s.id } end,
  c = function(s) return { "cfunc", s.code, s.closure } end,
  lone = function(s) return { "cfunc", s.code, s.closure } end,
  trace = function(s) return { "trace", s.number, s.covered, s.loop } end,
  work = function(s) return { "work", s.work } end,
  wait = function(s) return { "wait", s[1], s[2] } end,
  lua_cut = function(s) return { "cut", 7, s.bounds } end,
  lua_broken = function() return { "broken", G.SPF_BROKEN_CHAIN } end,
  outside = function() return { "broken", G.SPF_BROKEN_NOT_VM } end,
}

local SHOWN = {
  lua = lua_part, host = host_part, c = cfunc_part, lone = cfunc_part,
  builtin = function(s) return { text = BUILTINS[s.id], kind = "builtin", row = "[Lua builtins]" } end,
  work = function(s)
    return { text = WORK[s.work][3], kind = "vm", row = "[VM]", work = WORK[s.work][1] }
  end,
  wait = function(s)
    local is_wait = not s.no_wait
    return { text = s[3], kind = is_wait and "waiting" or "vm", row = is_wait and "[waiting]" or "[VM]" }
  end,
  lua_cut = function() return marker("[lua frames left out]") end,
  lua_broken = function() return marker("[lua stack unknown: invalid frame chain]") end,
  outside = function() return marker("[lua stack unknown: thread outside the VM]") end,
  host_cut = function() return marker("[host frames left out]") end,
  host_broken = function() return marker("[host frames missing: no unwind information]") end,
  early = function() return marker("[host frames missing: the host stack ends early]") end,
  resume = function() return marker("[coroutine]") end,
  trace = function(s) return marker(("[trace %d%s]"):format(s.number, s.loop and " loop" or "")) end,
}

local IS_FRAME = { lua = true, builtin = true, c = true, lone = true }

-- Returns the items of a run. The frames that a trace covers are compiled, and it is shown
-- rootward of them.
local function items_of_run(lua)
  local items = {}
  for i, step in ipairs(lua) do
    items[i] = { side = step.kind == "outside" and "alone" or "lua", kind = step.kind, step = step,
		 frame = LUA_ITEM[step.kind](step) }
  end
  for i = #lua, 1, -1 do
    local first, left = i, lua[i].kind == "trace" and lua[i].covered or 0
    while left > 0 and first > 1 and IS_FRAME[lua[first - 1].kind] do
      first, left = first - 1, left - 1
      items[first].compiled = lua[first].kind == "lua"
    end
    items[first].traces = items[first].traces or {}
    if lua[i].kind == "trace" then table.insert(items[first].traces, 1, lua[i]) end
  end
  return items
end

-- Adds the items of a segment of a stack.
local function add_items(items, segment, is_first)
  for _, step in ipairs(segment.host) do
    local kind = step.kind
    local frame = kind == "host" and { "host", step.code, step.offset } or
      kind == "host_cut" and { "cut", 5, step.vms } or
      kind == "host_broken" and { "broken", G.SPF_BROKEN_NO_CFI } or nil
    items[#items + 1] = { side = kind == "early" and "joined" or "host", kind = kind, step = step,
			  host = true, frame = frame }
  end
  if segment.vm then items[#items + 1] = { host = true, frame = { "vm" } } end
  local boundary = segment.boundary
  if boundary == "resume" then
    items[#items + 1] = { side = "lua", kind = "resume", step = segment, frame = { "resume" } }
  elseif boundary == "enter" and not (is_first and not segment.rooted and #segment.lua > 0) then
    items[#items + 1] = { frame = { "cbound" } }
  end
  for _, item in ipairs(items_of_run(segment.lua)) do items[#items + 1] = item end
end

-- A C function that stands on both sides, with nothing but the VM's work between, is one. If Lua has
-- a name for it, both stand, and the work is leafward of them.
local function unite_called(items)
  for i, item in ipairs(items) do
    local k = i + 1
    while items[k] and (not items[k].kind or items[k].kind == "work" or
			items[k].kind == "trace") do
      k = k + 1
    end
    if item.kind == "c" and items[k] and items[k].step.called == item.step then
      if closure_name(item.step) then
	table.insert(items, i + 1, table.remove(items, k))
      else
	item.side, items[k].side = "both", nil
      end
    end
  end
end

-- Returns the items of a stack, root first.
local function items_of(recipe)
  local segments = segments_of(recipe)
  add_work(segments, recipe.work)
  segments[1].rooted = recipe.rooted
  if recipe.fault then
    local random = random_of(recipe.fault)
    segments = faults[pick(random, { 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8 })](random, segments) or segments
  end
  local items = {}
  for i, segment in ipairs(segments) do add_items(items, segment, i == 1) end
  unite_called(items)
  if recipe.wait then
    items[#items + 1] = { side = "lua", kind = "wait", step = recipe.wait,
			  frame = LUA_ITEM.wait(recipe.wait) }
  end
  return items
end

-- Whether an item is shown. lua, host: whether that side is.
local function is_visible(item, lua, host)
  local side = item.side
  return side == "lua" and lua or side == "host" and host or side == "both" and (lua or host) or
    side == "joined" and lua and host or side == "alone" and lua and not host or false
end

-- Work stands behind the last function that does it, if no Lua frame comes after that.
local function move_work(list)
  local at, to
  for i, part in ipairs(list) do
    if part.work then at = i end
  end
  for i, part in ipairs(at and list or {}) do
    if part.of_lua then to = nil elseif part.does == list[at].work and part.does then to = i end
  end
  if to then table.insert(list, to < at and to + 1 or to, table.remove(list, at)) end
end

-- Returns what is shown of a sample's stack.
local function joined(sample, o)
  local lua, host = sample.lua and not o.no_lua, sample.host and not o.no_host
  local list, start = {}, 1
  for _, item in ipairs(items_of(sample.recipe)) do
    if is_visible(item, lua, host) then
      for _, trace in ipairs(o.traces and lua and item.traces or {}) do
	list[#list + 1] = SHOWN.trace(trace)
      end
      if item.kind == "resume" then start = #list + 1 end
      if item.kind ~= "trace" and not (item.kind == "resume" and o.no_coroutine_mark) then
	local part = SHOWN[item.kind](item.step, o)
	part.compiled = item.compiled
	part.of_lua = not item.host and item.kind ~= "work" and item.kind ~= "wait"
	part.on_lua = (item.kind == "c" or item.kind == "lone") and not (item.side == "both" and host) or nil
	list[#list + 1] = part
      end
    end
  end
  move_work(list)
  if o.coroutine then list = copy(list, start) end
  if #list == 0 then
    list[1] = marker(o.no_host and "[no lua stack]" or o.no_lua and "[no host stack]" or "[no stack]")
  end
  return list
end

random_stack.random_of, random_stack.random_recipes = random_of, random_recipes
random_stack.pick, random_stack.items_of, random_stack.joined = pick, items_of, joined
random_stack.LUA, random_stack.BUILTINS, random_stack.CODE = LUA, BUILTINS, CODE
random_stack.CLOSURES = CLOSURES
random_stack.WORK, random_stack.PROGRAM, random_stack.LIBRARIES = WORK, PROGRAM, LIBRARIES

return random_stack
