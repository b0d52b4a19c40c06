-- The event coroutine-wait: each wait of a coroutine is in the profile once, with its time between
-- two bounds that the program measures, and with the stack that yielded. The same with the compiler,
-- hooks, errors, functions that the collector frees, and many starts. Waits of coroutines that were
-- ready, or may have been, are told apart.
-- TIMEOUT: 300
-- WAITS: half of its time
-- LONG: 35
-- By hand: coroutine_waits.lua SEED.

local t = require("tools_test")
local truth = require("coroutine_truth")

local SEED = tonumber(arg[1]) or os.time()
local now, goes_on, resume, body_of = truth.now, truth.goes_on, truth.resume, truth.body_of
local yield = coroutine.yield
-- Waits that are summed: another program may interrupt a sample, which takes the time of many then.
local SUMMED = "[stack unknown: too many waits]"
math.randomseed(SEED)
print("seed " .. SEED)

local function begin(clock, options)
  local o = options or {}
  o.mode, o.clock, o.path = o.mode or "C", clock, "waits.bin"
  local ok, err = truth.start(o)
  t.ok(ok, clock .. ": " .. tostring(err))
end

local function finish(what)
  t.equal(truth.stop(), true, what .. ": stop")
end

local function check_lines(what, rest)
  finish(what)
  return truth.check("waits.bin", truth.line_of, what, rest)
end

-- -- Lines ------------------------------------------------------------------

local function nothing() end

local function coroutines(count, yields, done)
  local list = {}
  for k = 1, count do
    local f = body_of(("co%d.lua"):format(k), yields)
    list[k] = truth.new(f(now, goes_on, yield, 1e9, done or nothing))
  end
  return list
end

local function by_pcall(co)
  local _, ok, key = pcall(coroutine.resume, co)
  return ok, key
end

-- By a function of coroutine.wrap, as a loop calls it.
local function run_loop(name)
  local f = body_of(name, 3)(now, goes_on, yield, 2, nothing)
  local s0
  for key in coroutine.wrap(f) do
    s0 = now()
    if math.random(2) == 1 then truth.compute(math.random(60000)) end
    truth.resumes(key, s0)
  end
end

-- Most waits are short, some are long. The thread computes or sleeps between.
local function pause()
  local kind = math.random(20)
  if kind == 1 then
    truth.sleep(math.random(300))
  elseif kind < 5 then
    truth.compute(math.random(100000))
  end
end

local function run(list, turns)
  for i = 1, turns do
    resume(list[math.random(#list)], i % 3 == 0 and by_pcall or nil)
    pause()
    if i % 40 == 0 then run_loop("loop" .. i % 7 .. ".lua") end
  end
end

-- A hook of the program sees all the same.
local calls = 0
local function hook() calls = calls + 1 end

local SETTINGS = {
  { "compiler", nothing },
  { "interpreter", function() jit.off() end, function() jit.on() end },
  { "traces at once", function() jit.opt.start("hotloop=1", "hotexit=1") end,
    function() jit.opt.start("hotloop=56", "hotexit=10") jit.flush() end },
  { "hook of calls", function() debug.sethook(hook, "c") end, function() debug.sethook() end },
  { "hook of returns", function() debug.sethook(hook, "r") end, function() debug.sethook() end },
  { "hook of lines", function() debug.sethook(hook, "l") end, function() debug.sethook() end },
  { "hook of instructions", function() debug.sethook(hook, "", 7) end, function() debug.sethook() end },
  { "all hooks", function() debug.sethook(hook, "crl", 3) end, function() debug.sethook() end },
  { "hooks and traces", function() jit.opt.start("hotloop=1", "hotexit=1") debug.sethook(hook, "crl", 30) end,
    function() debug.sethook() jit.opt.start("hotloop=56", "hotexit=10") jit.flush() end },
}

for _, clock in ipairs { "coroutine-wait", "coroutine-wait/threshold=0/", "coroutine-wait/threshold=1000000000/",
			 "cpu,coroutine-wait/threshold=20000/" } do
  for _, setting in ipairs(SETTINGS) do
    local what = clock .. ", " .. setting[1]
    local list = coroutines(20, 4)
    run(list, 60)	-- Some wait at the start.
    begin(clock)
    setting[2]()
    run(list, 400)
    if setting[3] then setting[3]() end
    local leaves = check_lines(what)
    if clock:find("=0/", 1, true) then t.equal(leaves["[short waits]"], nil, what .. ": no wait is short") end
    if clock:find("=1000000000/", 1, true) then
      for leaf in pairs(leaves) do t.equal(leaf, "[short waits]", what .. ": leaf") end
    end
  end
end
t.ok(calls > 0, "hooks")

-- -- Ends of coroutines -----------------------------------------------------

-- A coroutine that ends, fails or is garbage has no wait then. A dead one cannot be resumed.
begin("coroutine-wait")
for i = 1, 200 do
  local name = ("end%d.lua"):format(i % 5)
  local ends = i % 3 == 0 and nothing or i % 3 == 1 and error or function() error("x") end
  local body = body_of(name, 2)(now, goes_on, yield, 1, ends)
  local c = truth.new(i % 2 == 0 and body or function() return pcall(body) end)
  for _ = 1, i % 4 do resume(c) end
  if i % 4 == 3 then
    t.equal(coroutine.status(c.co), "dead", name)
    resume(c)	-- Returns false.
    t.equal(pcall(coroutine.wrap(error), "x"), false, name)
  end
  if i % 20 == 0 then collectgarbage() end
end
-- Errors that pass by a yield: the coroutine goes on, and fails later.
for i = 1, 100 do
  local body = body_of("fails.lua", 1)(now, goes_on, yield, 1, function() error { i } end)
  local c = truth.new(function()
    for _ = 1, 3 do
      local ok, err = xpcall(body, function(e) return e end)
      t.ok(not ok and err[1] == i, "an error by a yield")
    end
    error("the end")
  end)
  for _ = 1, 3 do resume(c) end
  t.equal(resume(c), false, "the last error")
  t.equal(coroutine.status(c.co), "dead", "status")
end
check_lines("ends")

-- -- Functions that are freed ------------------------------------------------

-- Each function runs once, and is garbage before its sum becomes a sample. Another one takes its place.
begin("coroutine-wait/threshold=1000000000/")
for i = 1, 3000 do
  local name = ("gen%d.lua"):format(i)
  local code = ("\n"):rep(i % 50) .. "local now, goes_on, yield, key = ... " ..
    "return function() local t0 = now() yield(key) goes_on(key, t0) end"
  local line = i % 50 + 1
  local key = ("%s:%d:%d"):format(name, line, line)
  local c = truth.new(assert(loadstring(code, "@" .. name))(now, goes_on, yield, key))
  resume(c)
  resume(c)
  if i % 25 == 0 then collectgarbage() end
end
check_lines("freed functions")

-- -- Many lines --------------------------------------------------------------

-- The table of sums has 1024 places. Other waits are in the profile without a function.
begin("coroutine-wait")
local many = coroutines(4, 800)
for _ = 1, 3200 do
  for _, c in ipairs(many) do resume(c) end
end
check_lines("many lines", true)

-- -- Many starts ------------------------------------------------------------

local list = coroutines(30, 3)
run(list, 100)
for i = 1, 40 do
  begin(i % 2 == 0 and "coroutine-wait" or "coroutine-wait/threshold=0/")
  if i % 10 > 0 then run(list, 20 * (i % 4)) end
  if i % 7 == 0 then collectgarbage() end
  check_lines("start " .. i)
  run(list, 20)
end

-- A dump has all waits so far.
begin("coroutine-wait")
for i = 1, 5 do
  run(list, 100)
  t.equal(misc.sysprof.dump(), true, "dump")
  truth.check("waits.bin", truth.line_of, "dump " .. i)
end
check_lines("after dumps")

-- -- Stacks -----------------------------------------------------------------

local NAME_OF = { [pcall] = "pcall", [xpcall] = "xpcall", [yield] = "coroutine.yield" }

-- Returns the stack of the running coroutine from the caller of a level on, root first.
local function stack_here(level)
  local out = {}
  while true do
    level = level + 1
    local info = debug.getinfo(level, "Slf")
    if not info then break end
    table.insert(out, 1, info.what == "C" and (NAME_OF[info.func] or "?") or
      ("%s:%d:%d"):format(info.source:sub(2), info.linedefined, info.currentline))
  end
  return table.concat(out, ";")
end

local only_line = false
local function key_here(behind)
  local stack = stack_here(2)
  return only_line and stack:match("([^;]*%.lua:%d+:%d+)[^:]*$") or stack .. behind
end

-- Ways to yield. Each tells its stack on the line of its yield.
local YIELDS = {
  "return function() local k = key(';coroutine.yield') local t0 = now() yield(k) goes_on(k, t0) end",
  "return function() local k = key(';pcall;coroutine.yield') local t0 = now() pcall(yield, k) goes_on(k, t0) end",
  "return function(...) local k = key(';coroutine.yield') local t0 = now() local x = { yield(k) } goes_on(k, t0, x) end",
  [[return function() local k = key(';xpcall;coroutine.yield') local t0 = now() xpcall(yield, error, k) goes_on(k, t0) end]],
}
-- Ways to call go(). The stack of the coroutine goes through it.
local WAYS = {
  "return function(go) return (go()) end",
  "return function(go) local ok, err = pcall(go) assert(ok, err) end",
  "return function(go) assert(xpcall(go, error)) end",
  "return function(go)\n  local x = setmetatable({}, { __index = function() go() return 1 end }).x\n return x end",
  "return function(go) local x = setmetatable({}, { __newindex = function() go() end }) x.y = 1 end",
  "return function(go) for _ in function(_, i) if not i then go() return 1 end end do end end",
  "return function(go) return setmetatable({}, { __add = function() go() return 1 end }) + 1 end",
  "return function(go) return setmetatable({}, { __concat = function() go() return 1 end }) .. 'x' end",
  "return function(go) return (setmetatable({}, { __call = function() go() return 1 end })()) end",
  [[local mt = { __lt = function() go_now() return true end, __eq = function() go_now() return true end }
    return function(go) go_now = go local a, b = setmetatable({}, mt), setmetatable({}, mt) return a < b end]],
  "return function(go) return go() end",	-- A tail call: the function is not in the stack.
  "return function(go, ...) local n = select('#', ...) go(n, n, n) return n end",
  [[local function down(n, go)
      if n == 0 then go() return end
      down(n - 1, go)
    end
    return function(go) down(math.random(30), go) end]],
  -- The inner coroutine waits as long as the outer one, and longer.
  [[return function(go)
      local c = new(go)
      resume(c)
      while coroutine.status(c.co) == "suspended" do
        local k = key(';coroutine.yield') local t0 = now() yield(k) goes_on(k, t0)
        resume(c)
      end
    end]],
  [[return function(go, n)
      local co = coroutine.wrap(function() go() return nil end)
      local inner = co()
      while inner do
        local s0 = now()
        local k = key(';coroutine.yield') local t0 = now() yield(k) goes_on(k, t0)
        resumes(inner, s0)
        inner = co()
      end
      return n
    end]],
}
local env = setmetatable({ key = key_here, now = now, goes_on = goes_on, yield = yield, resume = resume,
			   resumes = truth.resumes, new = truth.new }, { __index = _G })
local function compiled(codes, name)
  local out = {}
  for i, code in ipairs(codes) do out[i] = setfenv(assert(loadstring(code, ("@%s%d.lua"):format(name, i))), env)() end
  return out
end
local yields, ways = compiled(YIELDS, "yield"), compiled(WAYS, "way")

-- Returns a function that yields at the end of a random chain.
local function random_chain()
  local plan = {}
  for i = 1, math.random(0, 8) do plan[i] = ways[math.random(#ways)] end
  local last = yields[math.random(#yields)]
  local function go(depth)
    if depth > #plan then return last(depth, depth) end
    plan[depth](function() go(depth + 1) end, depth)
  end
  return function() for _ = 1, 3 do go(1) end end
end

local function run_chains(count, least_us)
  local live = {}
  for i = 1, 12 do live[i] = truth.new(random_chain()) end
  local turn = 0
  while count > 0 do
    turn = turn % #live + 1
    local c = live[turn]
    resume(c)
    count = count - 1
    if coroutine.status(c.co) == "dead" then
      if count > 12 then live[turn] = truth.new(random_chain()) else table.remove(live, turn) end
      if #live == 0 then return end
    end
    if turn == 1 and least_us > 0 then truth.sleep(least_us) end
  end
end

local whole = 0
for _, setting in ipairs(SETTINGS) do
  -- Every wait is longer than the threshold. So it has its stack, or samples would take too long. The chains
  -- call a function of the program's hook, which is no function of the chain.
  local what = "stacks, " .. setting[1]
  begin("coroutine-wait/threshold=0/")
  setting[2]()
  run_chains(300, 2000)
  if setting[3] then setting[3]() end
  finish(what)
  local sums, stacks = 0, {}
  for _, s in ipairs(truth.samples("waits.bin")) do
    if s.leaf == SUMMED then sums = sums + s.waits end
  end
  if sums == 0 then
    stacks = truth.check("waits.bin", truth.stack_text, what)
    whole = whole + 1
  end
  print(("%s: %d sums, %s with a stack"):format(what, sums, tostring(stacks[""])))

  -- Function and line only.
  what = "lines, " .. setting[1]
  begin("coroutine-wait/threshold=1000000000/")
  only_line = true
  setting[2]()
  run_chains(500, 0)
  if setting[3] then setting[3]() end
  only_line = false
  check_lines(what)
  for _, s in ipairs(truth.samples("waits.bin")) do
    t.ok(#s.stack == 1 and s.leaf == "[short waits]", what .. ": " .. truth.stack_text(s.stack) .. " " .. tostring(s.leaf))
  end
end
t.ok(whole > 0, "stacks")

-- -- Waiting and busy --------------------------------------------------------

local BUSY_LEAST_NS = 10000	-- A shorter time is no sample of its own.

-- Runs work. Adds to slept_in_work how often the thread slept there.
local slept_in_work = 0
local function counted(work)
  return function(k)
    local before = truth.sleeps()
    work(k)
    slept_in_work = slept_in_work + truth.sleeps() - before
  end
end

-- Returns coroutines that yield and work in turn, and for each one the time just after its last resume.
local function rounds_of(count, work)
  local times, list = {}, {}
  for k = 1, count do
    local key = ("worker%d.lua:1:1"):format(k)
    local code = ("local now, goes_on, yield, work, times = ... return function() while true do local t0 = now() " ..
      "yield(%q) times[%d] = now() goes_on(%q, t0) work(%d) end end"):format(key, k, key, k)
    list[k] = truth.new(assert(loadstring(code, ("@worker%d.lua"):format(k)))(now, goes_on, yield, work, times))
    resume(list[k])
  end
  return list, times
end

-- Adds up bounds by leaf, of one wait from s0 (t0 at the earliest) to s1 (t1 at the latest). It is busy from a
-- time between from and to on.
local function add_split(sums, key, s1, t1, from, to)
  local one = sums[key] or { least = 0, most = 0, each = {} }
  local least, most = math.max(s1 - to, 0), math.max(t1 - from, 0)
  if least <= BUSY_LEAST_NS + 100 then least = 0 end	-- It may be too short to count.
  one.least, one.most, sums[key] = one.least + least, one.most + most, one
  table.insert(one.each, least)
end

-- Returns the least that one sum has without some of its waits, at worst the longest ones: a summed wait does not
-- tell when the thread was busy.
local function least_without(one, count)
  local least = one.least
  table.sort(one.each, function(a, b) return a > b end)
  for i = 1, count do least = least - (one.each[i] or 0) end
  return least
end

local unsummed = 0	-- Cases without a summed wait.

-- Of a profile that has ended.
local function check_split(what, sums)
  local busy, summed, any_summed = {}, {}, false
  truth.check("waits.bin", truth.line_of, what)
  for _, s in ipairs(truth.samples("waits.bin")) do
    local key = truth.line_of(s.stack)
    if s.leaf == "[thread busy]" then busy[key] = (busy[key] or 0) + s.ns end
    if s.leaf == SUMMED then summed[key], any_summed = (summed[key] or 0) + s.waits, true end
    t.ok(not s.leaf or s.leaf == "[thread busy]" or s.leaf == SUMMED, what .. ": leaf " .. tostring(s.leaf))
  end
  for key, one in pairs(sums) do
    local got, least, n = busy[key] or 0, least_without(one, summed[key] or 0), #one.each
    t.ok(got >= least - 100 * n and got <= one.most + 100 * n,
	 ("%s, %s: busy for %.0f ns, expected %.0f to %.0f"):format(what, key, got, least, one.most))
  end
  unsummed = unsummed + (any_summed and 0 or 1)
end

-- The scheduler sleeps. Then it runs five coroutines, one after the other. Each was ready when the first one was
-- resumed, for all that the profiler knows. The first one is not busy.
--
-- The kernel may put the thread to sleep between two coroutines, and the profiler sees that. Then the thread is busy
-- from a time between the first resume and the next one.
local function split_by_sleeps(what, work, turns, clock, options)
  local workers, times = rounds_of(5, counted(work))
  local sums = {}
  begin(clock, options)
  for _ = 1, turns do
    local first_s1, first_t1
    truth.sleep(4000)
    local slept, has_slept = truth.sleeps() - slept_in_work, false
    for k, c in ipairs(workers) do
      local s1 = now()
      has_slept = has_slept or truth.sleeps() - slept_in_work ~= slept
      resume(c)
      if k == 1 then first_s1, first_t1 = s1, times[1] end
      add_split(sums, c.key, s1, times[k], first_s1, has_slept and s1 or first_t1)
    end
  end
  return sums, what
end

local function compute_some(k) truth.compute(200000 * k) end

local sums = split_by_sleeps("ready", compute_some, 40, "coroutine-wait")
finish("ready")
check_split("ready", sums)
t.ok(sums["worker5.lua:1:1"].least > 20 * 2e6, "the last one waits for the others")

-- One coroutine blocks the thread: no sleep of the scheduler.
sums = split_by_sleeps("blocked", function(k) if k == 2 then truth.sleep(6000) end end, 40, "coroutine-wait")
finish("blocked")
check_split("blocked", sums)
t.ok(sums["worker1.lua:1:1"].most < 40 * 1e6 and sums["worker3.lua:1:1"].least > 20 * 6e6, "blocked: bounds")

-- The scheduler never sleeps: coroutines that wait while another one blocks have no other time.
local workers = rounds_of(3, function(k) if k == 1 then truth.sleep(2000) end end)
begin("coroutine-wait")
for _ = 1, 30 do
  for _, c in ipairs(workers) do resume(c) end
end
local leaves = check_lines("no sleep")
t.equal(leaves[""], nil, "no sleep: all are busy")
t.ok((leaves["[thread busy]"] or 0) + (leaves[SUMMED] or 0) > 50, "no sleep: busy")

-- -- Beside other events -----------------------------------------------------

-- With wall, the background thread uses the tables of functions for the stacks of threads that sleep. If the system
-- stops it meanwhile, a wait that ends has no stack, and says so. Then the case is run once more.
local function are_known()
  for _, s in ipairs(truth.samples("waits.bin")) do
    if truth.line_of(s.stack) == "" then return false end
  end
  return true
end

for _, case in ipairs {
  { "cpu,coroutine-wait", {} }, { "coroutine-wait,cpu", { hz = 1000 } }, { "wall,coroutine-wait", { hz = 1000 } },
  { "wall,coroutine-wait/threshold=1000000/", { threads = "all" } }, { "coroutine-wait", { threads = "all" } },
  { "alloc/period=1/,coroutine-wait", {} },
} do
  local what = case[1] .. (case[2].threads and ", all threads" or "")
  local tries = 0
  repeat
    tries = tries + 1
    sums = split_by_sleeps(what, compute_some, 15, case[1], case[2])
    finish(what)
  until not what:find("^wall") or are_known() or tries == 10
  if what:find("=1000000/", 1, true) then truth.check("waits.bin", truth.line_of, what) else check_split(what, sums) end
  local status, out = t.parse("--format=top waits.bin")
  t.equal(status, 0, what)
  local n, each = out:match("\nevent coroutine%-wait +%d+ samples?, [%d.]+ s of [%d.]+ s %(100.0%%%) waited, " ..
			    "(%d+) waits; ([%d.]+) ms each")
  t.equal(n, "75", what .. ": waits in " .. out)
  t.ok(tonumber(each) > 4, what .. ": time of each")
  for _, format in ipairs { "folded", "tree", "flamegraph", "svg", "pprof", "speedscope", "gecko", "json" } do
    for _, event in ipairs { "", " --event=coroutine-wait", " --event=coroutine-wait --weight=waits" } do
      status, out = t.parse(("--format=%s%s waits.bin -o out"):format(format, event))
      t.equal(status .. out, "0", what .. ", " .. format .. event)
    end
  end
end

t.ok(unsummed > 0, "waiting and busy")

-- Mode L: what yielded, and the Lua function that called it, without its callers.
sums = split_by_sleeps("mode L", compute_some, 10, "coroutine-wait", { mode = "L" })
finish("mode L")
local all, ns, count = truth.samples("waits.bin"), 0, 0
for _, s in ipairs(all) do
  t.ok(truth.stack_text(s.stack):find("^worker%d+%.lua:1:1;coroutine%.yield$"), "mode L: stack")
  ns, count = ns + s.ns, count + s.waits
end
t.equal(count, 50, "mode L: waits")
t.ok(ns > 50 * 4e6, "mode L: time")

-- Mode D: numbers only.
sums = split_by_sleeps("mode D", compute_some, 10, "coroutine-wait", { mode = "D" })
finish("mode D")
t.ok(misc.sysprof.report().samples >= 50, "mode D: samples")
t.equal(next(sums) ~= nil, true, "mode D")

t.finish()
