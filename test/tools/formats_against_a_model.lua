-- Each format shows of a random profile what a naive model of it tells (naive_profile.lua).
-- "luajit formats_against_a_model.lua SEED" repeats one profile.
-- BASE: none, it reads no profile of this LuaJIT
-- LONG: 28

local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local made = require("made_profile")
local naive = require("naive_profile")
local naive_activity = require("naive_activity")
local naive_waits = require("naive_waits")
local reader = require("sysprof.read.reader")
local t = require("tools_test")
local naive_formats = require("naive_formats")
local random_stack = require("random_stack")
local random_stream = require("random_stream")

local random_of, random_recipes = random_stack.random_of, random_stack.random_recipes
local random_layout, random_profile = random_stream.random_layout, random_stream.random_profile
local EVENTS, pick = random_stream.EVENTS, random_stream.pick

local SEEDS = 20	-- Besides the one of the day.
local KEEP = { timeline = true, activity = true }	-- What all formats need.

-- -- Options ---------------------------------------------------------------

local function has_event(events, name)
  for _, e in ipairs(events) do
    if e.name == name then return true end
  end
end

-- Returns options for a sum.
local function options_of_sum(random)
  local list = {
    {}, { weight = "event" }, { weight = "samples" }, { no_host = true }, { no_lua = true, weight = "samples" },
    { by = "module" }, { exclude = { "[waiting" } }, { include = { "[runnable]", "[short waits]" } },
    { threads = { 78, "a;b" } }, { states = { 1, 2, 3, 9 } }, { lines = true, depth = random(4) },
    { coroutine = true }, { by = "thread" }, { by = "vmstate", weight = "samples" }, { traces = true },
  }
  local o = pick(random, list)
  o.event = "wall"
  return o
end

-- Returns options for waits: of those that block, or by system calls.
local function options_of_waits(random, events)
  local list = {
    { blocking = true }, { blocking = true, lines = true }, { blocking = true, weight = "samples" },
    { blocking = true, loops = { "my_loop" } }, { blocking = true, loops = { "f (a.lua", "pcall" }, lines = true },
    { blocking = true, loops = { "call" }, weight = "samples" }, { blocking = true, loops = { "uv", "libc.so.6+" } },
    { blocking = true, loops = { "a.lua" } }, { blocking = true, loops = { "[", "leaf" } },
    { blocking = true, no_host = true }, { blocking = true, no_lua = true, weight = "samples" },
    { blocking = true, depth = random(4) }, { blocking = true, root = "f (", lines = true },
    { blocking = true, threads = { 77 } }, { blocking = true, labels = { "route=/b" } },
    { blocking = true, include = { "[waiting: epoll" } }, { blocking = true, exclude = { "call" }, coroutine = true },
    { blocking = true, by = "module" }, { blocking = true, by = "thread" }, { blocking = true, by = "line", lines = true },
    { blocking = true, traces = true, no_coroutine_mark = true }, { by = "syscall" }, { by = "syscall", weight = "samples" },
    { by = "syscall", blocking = true }, { by = "syscall", no_lua = true }, { by = "syscall", depth = 1 },
    { by = "syscall", include = { "call", "[page" } },
  }
  local with, is_default = {}, false
  for _, e in ipairs(events) do
    if naive_waits.has(e) then
      with[#with + 1] = e.name
      is_default = is_default or not e.parts	-- A sum is not.
    end
  end
  if #with == 0 then return nil end
  local o = pick(random, list)
  o.event = (not is_default or random(2) == 1) and pick(random, with) or nil
  return o
end

-- Returns sets of options to try; the first ones always.
local function random_options(random, events)
  local second = events[2].name
  local list = {
    { no_host = true }, { no_lua = true }, { lines = true }, { traces = true },
    { no_coroutine_mark = true }, { coroutine = true }, { traces = true, lines = true, no_host = true },
    { event = second }, { event = second, weight = "event" }, { event = "cpu", weight = "cpu" },
    { threads = { 77 } }, { threads = { 78, "a;b" }, weight = "event" },
    { states = { 1, 2, 3, 9 } }, { include = { "f (a.lua", "pcall" } }, { exclude = { "call" } },
    { labels = { "route=/b" } }, { labels = { "route=/a", "tenant=x;=y", "route=/b" }, weight = "event" },
    { root = "f (" }, { depth = random(4) }, { root = "[coroutine]", depth = 2 },
    { include = { "[waiting" } }, { include = { "[thread busy]", "too many waits" } }, { exclude = { "[waiting", "[page fault]" }, no_host = true },
    { no_host = true, weight = "event", include = { "f (" } }, { by = "module" },
    { by = "module", no_coroutine_mark = true }, { by = "vmstate" }, { by = "thread", weight = "event" },
  }
  local chosen = { {}, { weight = "event" } }
  for _, e in ipairs(events) do
    if e.second and not has_event(events, "wall") then chosen[2] = { event = e.name, weight = e.second } end
  end
  for i = 3, 4 do chosen[i] = table.remove(list, random(#list)) end
  if has_event(events, "wall") then
    chosen[2] = options_of_sum(random)
    if random(2) == 1 then chosen[1] = { event = pick(random, { "cpu", "offcpu", "coroutine-wait" }) } end
    if not has_event(events, chosen[1].event) then chosen[1] = {} end
  end
  for _ = 1, 2 do chosen[#chosen + 1] = options_of_waits(random, events) end
  for _, o in ipairs(chosen) do o.limit = 0 end
  return chosen
end

local function text_of(o)
  local list = {}
  for key, value in pairs(o) do
    if type(value) == "table" then value = table.concat(value, "|") end
    list[#list + 1] = key .. "=" .. tostring(value)
  end
  table.sort(list)
  return table.concat(list, " ")
end

-- -- Checks ----------------------------------------------------------------

local source = {}
for i = 1, 20 do source[i] = "line " .. i end
t.write_file("a.lua", table.concat(source, "\n"))

local function check_all(p, model, o, what)
  local case = { reader = p, naive = model, options = o, what = ("%s, %s"):format(what, text_of(o)) }
  naive_activity.check(p, model, what)
  t.equal(p:problem_text(), nil, case.what .. ": problems")
  naive_formats.check(case, naive_formats.FORMATS)
  naive_formats.check_annotated(case, "a.lua", source)
  return case
end

local function merged(streams)
  return t.with_files(streams, function(paths) return assert(reader.read_all(paths, KEEP)) end)
end

-- Returns an event, or the same without a period.
local function variant(random, event)
  local e = {}
  for key, value in pairs(event) do e[key] = value end
  if random(5) == 1 then e.period = 0 end
  return e
end

local function event_named(name)
  for _, e in ipairs(EVENTS) do
    if e.name == name then return e end
  end
end

-- Returns the events of a profile of real time, sometimes with others. Some names of parts are none.
local function events_of_real_time(random)
  local waits = random(4) == 1 and "lock-wait" or "offcpu"
  local list = { variant(random, EVENTS[1]), variant(random, event_named(waits)) }
  if random(4) == 1 then list[1], list[2] = list[2], list[1] end
  if random(2) == 1 then
    local others = { "page-faults", "coroutine-wait", "coroutine-wait", "alloc", "memory", waits == "offcpu" and "lock-wait" or "offcpu" }
    table.insert(list, random(3), variant(random, event_named(pick(random, others))))
  end
  list.wall = pick(random, { { "cpu", waits }, { "cpu", waits }, { "cpu", waits }, { waits, "cpu" },
			     { "cpu", waits, "page-faults", "none", "alloc" }, { waits } })
  return list
end

-- Returns the events of a profile: one of CPU time, and one or two of other units.
local function random_events(random)
  if random(2) == 1 then return events_of_real_time(random) end
  local list, others = {}, {}
  for i = 2, #EVENTS do others[i - 1] = EVENTS[i] end
  for i = 1, random(2) do list[i] = variant(random, table.remove(others, random(#others))) end
  table.insert(list, random(4) == 1 and 2 or 1, variant(random, EVENTS[1]))
  return list
end

local function parse(stream)
  return assert(reader.parse_string(stream, KEEP))
end

-- Two profiles compared, both of the event of time, or of what is live.
local function check_comparison(random, what, p, model, base, base_model)
  for _, o in ipairs { {}, { weight = "event" }, { lines = true }, { no_host = true }, { event = "live" },
		       { event = "live", weight = "objects", lines = true }, { event = "offcpu" },
		       { event = "coroutine-wait" }, { event = "coroutine-wait", weight = "waits" },
		       { event = "wall" }, { event = "wall", weight = "samples" }, { event = "offcpu", blocking = true },
		       { event = "offcpu", by = "syscall" }, { event = "wall", blocking = true, loops = { "call" } },
		       { event = "wall", by = "syscall", weight = "samples" } } do
    o.event, o.limit = o.event or "cpu", 0
    if has_event(model.events, o.event) and has_event(base_model.events, o.event) and random(2) == 1 then
      if naive.weight_of(model, o) ~= naive.weight_of(base_model, o) then o.weight = "event" end
      naive_formats.check({ reader = p, naive = model, options = o,
			    what = ("%s, compared, %s"):format(what, text_of(o)),
			    base = { reader = base, naive = base_model } }, naive_formats.COMPARED)
    end
  end
end

-- Two or three profiles merged: of processes that may have the same number.
local function check_merge(random, what, recipes, streams, models)
  if random(2) == 1 then
    local layout = random_layout(random, random(76, 78))
    streams[3], models[3] = random_profile(random, recipes, layout, random_events(random))
  end
  local p, model = merged(streams), naive.joined(models)
  local all = random_options(random, model.events)
  check_all(p, model, all[random(#all)], ("%s, %d merged"):format(what, #streams))
end

-- Returns the events of the second of two sessions: often only one of them has a sum.
local function second_events(random, events)
  local list = { wall = events.wall }
  for i, e in ipairs(events) do list[i] = e end
  if random(2) == 1 then list.wall = not events.wall and { "cpu", "offcpu" } or nil end
  return list
end

-- Two sessions of a process in one stream.
local function check_sessions(random, what, recipes, layout, events)
  local first, model = random_profile(random, recipes, layout, events, 0)
  local second, other = random_profile(random, recipes, layout, second_events(random, events), 1)
  local p = parse(first .. second:sub(#B.PROLOGUE + 1))
  local joined = naive.joined { model, other }
  local o = random_options(random, joined.events)
  check_all(p, joined, o[random(#o)], what .. ", two sessions")
end

local function check_seed(seed, given, name)
  local random, what = random_of(seed), (name or "") .. "seed " .. seed
  local recipes, events = given or random_recipes(random), random_events(random)
  local layout = random_layout(random, 77)
  local stream, model = random_profile(random, recipes, layout, events)
  local p = parse(stream)
  for _, o in ipairs(random_options(random, model.events)) do check_all(p, model, o, what) end
  local other_layout = random_layout(random, random(76, 78))
  local other, other_model = random_profile(random, recipes, other_layout, random_events(random))
  check_comparison(random, what, p, model, parse(other), other_model)
  check_merge(random, what, recipes, { stream, other }, { model, other_model })
  if seed % 2 == 1 then check_sessions(random, what, recipes, layout, events) end
end

-- The smallest case of a stack that goes on below another one than the stack before: the last
-- one has the caller of the second and the callee of the first.
local function siblings()
  local function stack(...)
    local steps = {}
    for i, f in ipairs { ... } do steps[i] = { kind = "lua", f = f, line = 0 } end
    return steps
  end
  return { stack(1, 2, 7, 8), stack(1, 5), stack(1, 5, 7) }
end

-- -- Many threads ----------------------------------------------------------

-- Activity tells of some threads only. Returns a stream of many, and its samples.
local function many_threads(pid)
  local b, samples = B.new(), {}
  for tid = 1, 300 do
    b:context(tid, tid * 7000)
    if tid == 1 then
      b:meta("clock", "offcpu"):meta("wall", "cpu,offcpu"):meta("pid", pid):event(0, "offcpu", G.SPF_UNIT_NS, 0)
    end
    b:sample(0, 0, 1, G.SPF_VMST_C, tid * 12345, 0)
    samples[tid] = { time = tid * 7000 + 1000, weight = tid * 12345, event = "offcpu", unit = "ns", in_sum = true,
		     tid = tid, pid = pid, session = pid }
  end
  return b:finish(), { samples = samples, names = {} }
end

local function check_many_threads()
  local first, model = many_threads("77")
  local second, other = many_threads("78")
  naive_activity.check(parse(first), model, "300 threads")
  for _, s in ipairs(other.samples) do table.insert(model.samples, s) end
  naive_activity.check(merged { first, second }, model, "600 threads")
  t.equal(merged({ first, first }).activity.left_out, 300 - 256, "the same threads twice")
end

-- -- Real profiles ---------------------------------------------------------

local PROGRAM_TEXT = [[
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local function down(n, f)
  if n == 0 then return f() end
  return (down(n - 1, f))
end

local function leaves(n)
  if n == 0 then coroutine.yield(fib(10)) return end
  leaves(n - 1)
  leaves(n - 1)
end

local function upper(s)
  return (s:gsub("%w+", function(word) return word:upper():rep(3) end))
end

local function check(n)
  if n % 2 == 0 then error { n } end
  return fib(n % 12)
end

return function(turn)
  for _ in coroutine.wrap(function() leaves(4) end) do fib(7) end
  for i = 1, 30 do pcall(check, i) end
  down(turn % 60, function() return fib(13) end)
  upper(("one two three "):rep(40))
  local list = {}
  for i = 1, 300 do list[i] = i * 7919 % 1009 end
  table.sort(list, function(a, b) return a > b end)
  down(200, function() return upper("four five") end)
end
]]

-- Profiles this process while it runs the program.
local function check_real_profile()
  t.write_file("work.lua", PROGRAM_TEXT)
  local work, lines = assert(loadfile("work.lua"))(), {}
  for line in PROGRAM_TEXT:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  assert(misc.sysprof.start { mode = "C", interval = 1, path = "real.bin" })
  for turn = 1, 60 do work(turn) end
  t.work_until(300)
  assert(misc.sysprof.stop())
  naive_formats.agree(assert(reader.read("real.bin", { timeline = true })), "real profile", "work.lua", lines)
end

-- -- All -------------------------------------------------------------------

if arg and arg[1] then
  check_seed(tonumber(arg[1]))
  t.finish()
end

check_real_profile()

-- Most code of what follows runs a few times only. To compile it takes longer than to run it.
jit.off()
jit.flush()
check_many_threads()
for seed = 1, 2 do
  naive_formats.agree(parse(made.stream(seed)), "made profile " .. seed)
  naive_formats.agree(parse(made.stream(seed, true)), "made profile of real time " .. seed)
end
local of_day = tonumber(os.date("%Y%m%d"))
print("seed of the day: " .. of_day)
for seed = 1, 2 do check_seed(seed, siblings(), "siblings, ") end
for seed = 1, SEEDS do check_seed(seed) end
check_seed(of_day)

t.finish()

