-- Programs whose callbacks block for random times, on an event loop of libuv and on one in Lua. The
-- table of blocking lines has each wait once, with the time that the program has measured. Waits of
-- the loop itself are idle. Idle, blocking and unknown waits are all time off CPU. The same with the
-- clock wall, with all threads, and with threads of libuv.
-- TIMEOUT: 300
-- BASE: none, times that the kernel counts; the VM runs a loop, or none
-- WAITS: most of its time
-- By hand: blocking_lines.lua SEED ROUNDS.

local ffi = require("ffi")
local t = require("tools_test")

local SEED, ROUNDS = tonumber(arg[1]) or os.time(), tonumber(arg[2]) or 150
local SHORTEST, LONGEST = 5, 12	-- Of a wait, in ms: far above the threshold.
-- A switch of threads counts for the time on CPU and for the wait: 30 us in each, and more where
-- another program or the hypervisor comes in between.
local SLACK_MS, SLACK_ONCE_MS = 0.1, 1
local PART_MS = 1050	-- Of a wait: a sample stands for a second, and for the time until a look.

ffi.cdef [[
typedef struct { long s, part; } blocking_time;
typedef struct { blocking_time interval, value; } blocking_timer;
int clock_gettime(int id, blocking_time *now);
int usleep(unsigned us);
int poll(void *fds, unsigned long n, int ms);
int select(int n, void *r, void *w, void *e, blocking_time *timeout);
int timerfd_create(int id, int flags);
int timerfd_settime(int fd, int flags, const blocking_timer *timer, blocking_timer *old);
]]
local C = ffi.C
local MONOTONIC, THREAD_CPUTIME = 1, 3
local ts = ffi.new("blocking_time")

local function clock_ms(id)
  C.clock_gettime(id, ts)
  return tonumber(ts.s) * 1e3 + tonumber(ts.part) * 1e-6
end

local function now() return clock_ms(MONOTONIC) end

-- -- What the program measures ---------------------------------------------

-- By key: { n =, least =, most =, longest_least =, longest_most = }. Times off CPU, in ms.
local truth
local outer0, cpu0, inner0

local function begin()
  outer0, cpu0, inner0 = now(), clock_ms(THREAD_CPUTIME), now()
end

-- The time off CPU since begin() lies between two bounds: each real time contains one time on CPU,
-- or is in it.
local function finish(key)
  local inner1, cpu1, outer1 = now(), clock_ms(THREAD_CPUTIME), now()
  local one = truth[key] or { n = 0, least = 0, most = 0, longest_least = 0, longest_most = 0 }
  local least, most = math.max(inner1 - inner0 - (cpu1 - cpu0), 0), outer1 - outer0 - (cpu1 - cpu0)
  truth[key], one.n, one.least, one.most = one, one.n + 1, one.least + least, one.most + most
  one.longest_least = math.max(one.longest_least, least)
  one.longest_most = math.max(one.longest_most, most)
end

-- -- Callbacks that block --------------------------------------------------

local uv	-- Or nil.
local timer_fd = C.timerfd_create(MONOTONIC, 0)
local timer = ffi.new("blocking_timer")

local function set_timer(ms)
  timer.value.s, timer.value.part = math.floor(ms / 1000), ms % 1000 * 1e6
  assert(C.timerfd_settime(timer_fd, 0, timer, nil) == 0)
end

-- Each item: what the thread waits for, code that waits so for ms milliseconds, and code before and
-- after it, on lines of their own. A tick on the way into a call ends it before it sleeps. forks: the thread may
-- wait for the new process, too.
local KINDS = {
  { "clock_nanosleep", "repeat C.usleep((till - now()) * 1000 + 1) until now() >= till" },
  { "poll", "repeat C.poll(nil, 0, math.max(till - now(), 0) + 1) until now() >= till" },
  { "read", "pipe:read('*a')", "local pipe = io.popen(('sleep %.3f'):format(ms / 1000))", "pipe:close()" },
  { "wait4", "os.execute(('sleep %.3f'):format(ms / 1000))", forks = true },
  { "clock_nanosleep", "uv.sleep(ms)", needs_uv = true },
  { "read", "uv.fs_read(timer_fd, 8, -1)", "set_timer(ms)", needs_uv = true },
}

local leaf_of = {}	-- By key. false: any.

-- Returns a function of ms that blocks. Its lines are in a file of their own.
local function blocker(number, kind)
  local file, line = ("block%d.lua"):format(number), math.random(4, 30)
  local function measured(code, at)
    local key = ("%s:%d"):format(file, at)
    leaf_of[key] = code == kind[2] and kind[1] or false
    return ("begin()\n%s\nfinish(%q)"):format(code, key)
  end
  local code = "local now, begin, finish, uv, C, set_timer, timer_fd = ...\n" ..
    "local function block(ms) local till = now() + ms" .. ("\n"):rep(line - 3)
  if kind[3] then
    code, line = code .. measured(kind[3], line) .. "\n", line + 3
  end
  code = code .. measured(kind[2], line)
  if kind[4] then code = code .. "\n" .. measured(kind[4], line + 3) end
  code = code .. "\nend return block"
  return assert(loadstring(code, "@" .. file))(now, begin, finish, uv, C, set_timer, timer_fd)
end

-- Ways to a blocker.
local WAYS = {
  function(f, ms) f(ms) end,
  function(f, ms) assert(pcall(f, ms)) end,
  function(f, ms) coroutine.wrap(function() f(ms) end)() end,
  function(f, ms) local _ = ("a"):gsub("a", function() f(ms) end) end,
  function(f, ms) return f(ms) end,
  function(f, ms) return setmetatable({}, { __index = function() f(ms) return 1 end }).x end,
}

local blockers

local function new_blockers()
  blockers = {}
  for _, kind in ipairs(KINDS) do
    if uv or not kind.needs_uv then
      blockers[#blockers + 1] = blocker(#blockers + 1, kind)
    end
  end
end

local function some_ms() return math.random(SHORTEST, LONGEST) end

local function block_some(ms)
  WAYS[math.random(#WAYS)](blockers[math.random(#blockers)], ms or some_ms())
end

-- -- What a profile has ----------------------------------------------------

-- On a busy machine, a wait may end while the thread is in the handler of another sample, for longer than the
-- profiler waits. Then the sample is lost, and the reader says so.
local function parse(options)
  local status, out, err = t.parse(options .. " blocking.bin")
  local _, patterns = options:gsub("%-%-loop=", "")
  local rest, told = t.without_load(err):gsub("[^\n]*: %-%-loop=[^\n]* matches [^\n]*Lua code[^\n]*\n", "")
  t.equal(rest, "", options .. ": messages")
  t.equal(told, patterns, options .. ": what each pattern matches")
  t.equal(status, 0, options .. ": status")
  return out
end

-- Returns the rows of a table by text: { total =, waits =, longest = }.
local function rows_of(out)
  local rows = {}
  local head, table_text = out:match("^(.-\n\n) +total ms [^\n]*\n(.*)$")
  for line in (table_text or ""):gmatch("[^\n]+") do
    -- A sum of waits has no longest one.
    local total, waits, longest, text = line:match("^ *([%d.]+) +[%d.]+ +(%d+) +([%d.]*) +(.-)$")
    t.ok(total and not rows[text], "row: " .. line)
    rows[text] = { total = tonumber(total), waits = tonumber(waits), longest = tonumber(longest) }
  end
  return rows, head
end

-- Returns the number of waits by the last line of a file of the test, and by what the thread waits for.
local function waits_by_line(out)
  local sums = {}
  for stack, n in out:gmatch("([^\n]*) (%d+)\n") do
    local key, leaf
    for frame in stack:gmatch("[^;]+") do
      key = frame:match("([%w_]+%.lua:%d+)%)?$") or key
      leaf = frame
    end
    key, leaf = key or "", leaf:match("^%[waiting: (.*)%]$") or leaf
    if leaf == "select" then leaf = "pselect6" end	-- Of a C library before 2.34.
    sums[key] = sums[key] or {}
    sums[key][leaf] = (sums[key][leaf] or 0) + tonumber(n)
  end
  return sums
end

local function within(got, least, most, what)
  t.ok(got >= least and got <= most, ("%s: %.3f, expected %.3f to %.3f"):format(what, got, least, most))
end

-- Waits for what the program itself does not measure.
local OTHERS = { ["[page fault]"] = true }
local OF_FORK = { clone3 = true, clone = true, vfork = true, wait4 = true }

-- Compares a profile with what the program has measured. idle: set of keys that are idle. loops: options.
-- name: how the loop is called in the report, or nil.
local function check(what, loops, idle, name)
  local calls, head = rows_of(parse("--format=top --by=syscall --event=offcpu --limit=0"))
  local out = parse("--blocking --limit=0 " .. loops)
  local rows, blocking_head = rows_of(out)
  t.ok(head and blocking_head, what .. ": heads\n" .. out)
  local sums, counts = {}, {}
  for kind, s, n in blocking_head:gmatch("\nwaits: ([%a ]-) +([%d.]+) s, (%d+) waits?") do
    sums[kind], counts[kind] = tonumber(s) * 1e3, tonumber(n)
  end
  -- Each time off CPU is of one kind, or the thread was runnable. The figures are rounded to 1 ms.
  local runnable = calls["[runnable]"] or { total = 0, waits = 0 }
  local all = tonumber(head:match("\nevent offcpu +%d+ samples?, ([%d.]+) s of ")) * 1e3
  within(sums.idle + sums.blocking + sums["without Lua"] + sums.unknown + runnable.total, all - 3, all + 3,
	 what .. ": all time")
  local shown = 0
  for _, row in pairs(rows) do shown = shown + row.total end
  within(shown, sums.blocking - 1, sums.blocking + 1, what .. ": sum of the table")
  t.equal(blocking_head:match("waits in ([^\n]*)\n"), name, what .. ": name of the loop")
  -- Waits without a stack could be of any line. Without records, the looks may miss the most of a wait,
  -- and it counts as a short one.
  local exact = head:find("by switch-records", 1, true)
  local short = exact and calls["[short waits]"]
  local lost = tonumber(head:match("\nlost +(%d+)"))
  local unseen = lost + counts.unknown - (short and short.waits or 0)
  local rest = lost * PART_MS + sums.unknown + runnable.total + 1
  local function slack(n) return SLACK_ONCE_MS + n * (exact and SLACK_MS or LONGEST) end
  local by_line = waits_by_line(parse("--blocking --format=folded --lines --weight=waits " .. loops))
  local in_all = 0
  for _, seen in pairs(waits_by_line(parse("--blocking --format=folded --weight=waits " .. loops))) do
    for _, n in pairs(seen) do in_all = in_all + n end
  end
  t.equal(in_all, counts.blocking, what .. ": waits without lines")
  local by_text = {}
  for text, row in pairs(rows) do
    local key = text:match("([%w_]+%.lua:%d+)") or ""
    t.ok(not by_text[key], what .. ": a line has one row: " .. text)
    by_text[key] = row
    t.ok(truth[key], what .. ": the program has blocked there: " .. text)
  end
  local idle_least, idle_most, idle_n = 0, 0, 0
  for key, one in pairs(truth) do
    local label = what .. ", " .. key
    local expected = leaf_of[key]
    if idle[key] then
      t.equal(by_text[key], nil, label .. " does not block")
      idle_least, idle_most, idle_n = idle_least + one.least, idle_most + one.most, idle_n + one.n
    else
      local row, seen = by_text[key] or { total = 0, waits = 0, longest = 0 }, by_line[key] or {}
      local sum = 0
      for leaf, n in pairs(seen) do
	sum = sum + n
	t.ok(leaf == expected or OTHERS[leaf] or OF_FORK[leaf] and (not expected or expected == "wait4"),
	     ("%s: %d waits for %s"):format(label, n, leaf))
      end
      t.equal(row.waits, sum, label .. ": waits")
      within(row.total, expected and one.least - rest - slack(one.n) or 0, one.most + slack(one.n), label .. ": time")
      within(row.longest, expected and unseen == 0 and one.longest_least - runnable.total - slack(1) or 0,
	     one.longest_most + slack(1), label .. ": longest")
      if expected then within(seen[expected] or 0, one.n - unseen, one.n, label .. ": waits") end
    end
  end
  if next(idle) then
    within(counts.idle, idle_n - unseen, idle_n, what .. ": idle waits")
    within(sums.idle, idle_least - rest - slack(idle_n), idle_most + slack(idle_n), what .. ": idle time")
  else
    t.equal(counts.idle, 0, what .. ": idle waits")
  end
  print(("%s: %d idle, %d blocking, %d unknown of %d waits; %.0f ms runnable of %.0f ms"):format(what, counts.idle,
    counts.blocking, counts.unknown, counts.idle + counts.blocking + counts["without Lua"] + counts.unknown,
    runnable.total, all))
  return sums, counts, calls
end

local function start(options)
  truth = {}
  options.mode, options.path = "C", "blocking.bin"
  assert(misc.sysprof.start(options))
end

math.randomseed(SEED)
print(("seed %d, %d rounds"):format(SEED, ROUNDS))

-- -- On libuv --------------------------------------------------------------

-- Runs rounds: the loop is idle for a random time, then a callback may block.
local function run_uv(rounds)
  local alarm, before, after = uv.new_timer(), uv.new_prepare(), uv.new_check()
  local n, waits = 0, false
  before:start(function()
    waits = true
    begin()
  end)
  after:start(function()
    if waits then finish("idle") end
    waits = false
  end)
  local function ring()
    n = n + 1
    if n == rounds then
      for _, handle in ipairs { alarm, before, after } do handle:close() end
      return
    end
    if n % 3 ~= 0 then block_some(n == 10 and math.random(1050, 1300) or nil) end
    uv.update_time()
    alarm:start(some_ms(), 0, ring)
  end
  uv.update_time()
  alarm:start(some_ms(), 0, ring)
  uv.run()
  waits = false
end

local function on_libuv(options)
  local what = ("libuv, %s%s"):format(options.clock, options.threads and ", all threads" or "")
  new_blockers()
  start(options)
  run_uv(ROUNDS)
  assert(misc.sysprof.stop())
  local sums, counts = check(what, "", { idle = true }, "uv_run")
  if options.threads then
    t.ok(counts["without Lua"] > 0 and sums["without Lua"] > sums.idle, what .. ": threads of libuv wait without Lua")
  end
end

local path = io.popen("ls /usr/lib/*/lua/5.1/luv.so 2>/dev/null"):read()
if path then
  uv = package.loadlib(path, "luaopen_luv")()
  on_libuv { clock = "offcpu" }
  on_libuv { clock = "wall", hz = 200 }
  -- Starts the threads of libuv.
  uv.fs_stat("/", function() end)
  uv.run()
  on_libuv { clock = "offcpu", threads = "all" }
else
  print("skipped: libuv's loop, because lua-luv is not installed")
end

-- -- On a loop in Lua ------------------------------------------------------

local SCHEDULER = [[
local C, now, begin, finish, timeout, keys = ...
local ready, depth = {}, 0
local function wait_for_events(till)
  local key = keys[depth]
  begin()
  if depth % 2 == 1 then
    repeat C.poll(nil, 0, math.max(till - now(), 0) + 1) until now() >= till
  else
    repeat timeout.part = math.max(till - now(), 0) * 1000 + 1 C.select(0, nil, nil, nil, timeout) until now() >= till
  end
  finish(key)
end
local function run_tasks(tasks)
  depth = depth + 1
  while #tasks > 0 do
    wait_for_events(now() + math.random(5, 12))
    local i = math.random(#tasks)
    if not tasks[i]() then table.remove(tasks, i) end
  end
  depth = depth - 1
end
return run_tasks
]]
local POLL, SELECT = "scheduler.lua:7", "scheduler.lua:9"	-- Of the outer, and of an inner loop.
leaf_of[POLL], leaf_of[SELECT] = "poll", "pselect6"

local function task(n, run_tasks)
  return coroutine.wrap(function()
    for i = 1, n do
      coroutine.yield(true)
      if math.random(2) == 1 then block_some() end
      -- A loop inside a callback of the loop.
      if run_tasks and i == 5 then run_tasks { task(3) } end
    end
    return false
  end)
end

local function in_lua(options)
  local what = "Lua, " .. options.clock
  local run_tasks = assert(loadstring(SCHEDULER, "@scheduler.lua"))(C, now, begin, finish, ffi.new("blocking_time"),
								   { POLL, SELECT })
  local tasks = {}
  new_blockers()
  start(options)
  for i = 1, 10 do tasks[i] = task(math.floor(ROUNDS / 10), run_tasks) end
  run_tasks(tasks)
  assert(misc.sysprof.stop())
  check(what, "", {}, nil)
  -- A pattern matches the line of the definition, and the current one.
  local waits, one_waits, runs = "--loop='^wait_for_events ('", "--loop=scheduler.lua:7", "--loop=scheduler.lua:13"
  local name = "wait_for_events (scheduler.lua:3)"
  check(what .. ", the function that waits", waits, { [POLL] = true, [SELECT] = true }, name)
  check(what .. ", its line", one_waits, { [POLL] = true }, name)
  -- The wait is not the scheduler's own.
  check(what .. ", its caller", runs, {}, nil)
  check(what .. ", both", waits .. " " .. runs, { [POLL] = true }, name)
end

in_lua { clock = "offcpu" }
in_lua { clock = "wall", hz = 200 }

t.finish()
