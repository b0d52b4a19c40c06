----------------------------------------------------------------------------
-- A program that profiles itself for one session, and logs by its own clocks what each of its parts did.
--
--   truth_program.lua KIND CLOCK HZ JIT SEED PROFILE
--
-- Prints the log as a table of Lua:
--   parts    list by part: the truth; see the kinds
--   clock    which source the profile had
--   limit    what the profile says against itself
--   ...      sums of the session; see the kinds
-- Part k is the function in line k of the chunk CHUNK, if the kind does not say otherwise. Sizes, lengths and order follow
-- from the seed.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef([[
typedef struct { int sec, sec_high, nsec, nsec_high; } truth_time;
int truth_clock(int, truth_time *) __asm__("clock_gettime");	/* coroutine_truth declares it, too. */
int usleep(unsigned);
int poll(void *, unsigned long, int);
int open(const char *, int, ...);
long pread(int, void *, unsigned long, long);
]])

local KIND, CLOCK, HZ, JIT, SEED, PROFILE = unpack(arg, 1, 6)
local CHUNK = "truth_parts"
local MONOTONIC, THREAD_CPUTIME = 1, 3
local COSTS = { 4, 7, 3, 10, 5, 2, 8, 6 }	-- Of the parts.

math.randomseed(tonumber(SEED))
jit[JIT]()

local time = ffi.new("truth_time")
local function now(id)
  ffi.C.truth_clock(id, time)
  return time.sec * 1e9 + time.nsec
end

-- Returns the functions of a template for part k, one in a line.
local function compile(line_of, ...)
  local lines = {}
  for k = 1, #COSTS do lines[k] = ("local function f%d(...) %s end"):format(k, line_of(k)) end
  lines[1] = "local a, b, c = ... " .. lines[1]
  lines[#lines + 1] = "return f1, f2, f3, f4, f5, f6, f7, f8"
  return { assert(loadstring(table.concat(lines, "\n"), "=" .. CHUNK))(...) }
end

local function shuffled()
  local order = {}
  for k = 1, #COSTS do table.insert(order, math.random(k), k) end
  return order
end

local function start()
  assert(misc.sysprof.start { mode = "C", clock = CLOCK, hz = tonumber(HZ), path = PROFILE, threads = "own" })
end

local log = { parts = {} }

local function stop()
  assert(misc.sysprof.stop())
  local r = misc.sysprof.report()
  log.clock, log.limit = r.clock, r.limit
end

local function print_table(t, name, indent)
  print(indent .. name .. "{")
  for key, value in pairs(t) do
    local left = type(key) == "number" and ("[%d] = "):format(key) or key .. " = "
    if type(value) == "table" then print_table(value, left, indent .. "  ")
    elseif type(value) == "number" then print(("%s  %s%.17g,"):format(indent, left, value))
    else print(("%s  %s%q,"):format(indent, left, value)) end
  end
  print(indent .. (indent == "" and "}" or "},"))
end

local kinds = {}

-- -- Ticks: CPU time of each part, nanoseconds ------------------------------

local SAMPLES = 100	-- The session ends after so many.

function kinds.ticks()
  local f = compile(function() return "local x = 0 for i = 1, (...) do x = x + i % 7 end return x" end)
  -- Iterations of 10 us of CPU time.
  local n, ns = 1000, 0
  while ns < 5e6 do
    n = n * 2
    local from = now(THREAD_CPUTIME)
    f[1](n)
    ns = now(THREAD_CPUTIME) - from
  end
  -- A part takes 0.1 to 10 ms: shorter and longer than a tick of the kernel and an interval.
  local scale = n / ns * 1e4 * 4 * 25 ^ math.random()
  for k in ipairs(COSTS) do log.parts[k] = 0 end
  start()
  local deadline = now(THREAD_CPUTIME) + SAMPLES / HZ * 1e9
  repeat
    for _, k in ipairs(shuffled()) do
      local size = math.floor(COSTS[k] * scale * (0.5 + math.random()))
      local from = now(THREAD_CPUTIME)
      f[k](size)
      log.parts[k] = log.parts[k] + now(THREAD_CPUTIME) - from
    end
  until now(THREAD_CPUTIME) > deadline
  stop()
end

-- -- Allocations: the host logs them by label -------------------------------

local EXPRESSIONS = {
  "{ d, i }", "('x'):rep(d) .. i", "function() return d, i end", "b(d)", "c(d, i)", "a(d)",
  "table.concat({ d, i, 'x' }, ',')", "coroutine.wrap(function() return { d } end)()", "i .. 'y'",
}
local ROUNDS = 400

function kinds.alloc()
  local function list_of(n)
    local t = {}
    for i = 1, n % 300 do t[i] = i end
    return t
  end
  local f = compile(function(k)
    local body = {}
    for i = 1, 3 do body[i] = ("t[i %% 250 + 250 * %d] = %s"):format(i, EXPRESSIONS[math.random(#EXPRESSIONS)]) end
    return ("local n, t, sizes = ... for i = 1, n do local d = sizes[i %% 97 + 1] %s end"):format(table.concat(body, " "))
  end, list_of, ffi.typeof("char[?]"), ffi.typeof("struct { double a, b; }"))
  local sizes, keep = {}, {}
  for i = 1, 97 do sizes[i] = math.floor(8 * 1000 ^ math.random()) end
  for k in ipairs(COSTS) do keep[k] = {} end
  local period = 2 ^ math.random(12, 15)
  CLOCK = CLOCK .. ("/period=%d/"):format(period)
  start()
  for _ = 1, 20 do
    for _, k in ipairs(shuffled()) do
      truth_label(k)
      f[k](math.floor(COSTS[k] * ROUNDS / 20 * (0.5 + math.random()) + 1), keep[k], sizes)
      truth_label(#COSTS + 1)
    end
  end
  truth_label(0)
  stop()
  log.period = period
  for k in ipairs(COSTS) do log.parts[k] = {} end
  for _, row in ipairs(assert(loadstring("return {" .. truth_log() .. "}"))()) do
    local part = log.parts[row[1]]
    if part then part[#part + 1] = { row[2], row[3], row[4] } end
  end
end

-- -- Waits: of each part off CPU, and of it runnable, nanoseconds -----------

local WAIT_SECONDS = 1
local LOOK = 64	-- Bytes of /proc/thread-self/schedstat, at least.

function kinds.waits()
  local fd, text = ffi.C.open("/proc/thread-self/schedstat", 0), ffi.new("char[?]", LOOK)
  assert(fd >= 0, "no schedstat")
  local function delay()
    local n = ffi.C.pread(fd, text, LOOK, 0)
    return tonumber(ffi.string(text, n):match("^%d+ (%d+) "))
  end
  local f = compile(function(k)
    return k % 2 == 0 and "a.usleep(...)" or "a.poll(nil, 0, math.ceil((...) / 1000))"
  end, ffi.C)
  for k in ipairs(COSTS) do log.parts[k] = { off = 0, ready = 0, waits = 0 } end
  -- Longer than the threshold of 2 ms, a third shorter.
  local scale = 1e3 * 2 ^ math.random()
  start()
  local from, cpu, ready = now(MONOTONIC), now(THREAD_CPUTIME), delay()
  repeat
    for _, k in ipairs(shuffled()) do
      local us = math.random(3) == 1 and math.random(1000) or COSTS[k] * scale * (0.5 + math.random())
      local r0, t0, c0 = delay(), now(MONOTONIC), now(THREAD_CPUTIME)
      f[k](us)
      local c1, t1, r1 = now(THREAD_CPUTIME), now(MONOTONIC), delay()
      local part = log.parts[k]
      part.off, part.ready, part.waits = part.off + (t1 - t0) - (c1 - c0), part.ready + r1 - r0, part.waits + 1
      local till = now(THREAD_CPUTIME) + math.random() * 4e6
      while now(THREAD_CPUTIME) < till do end
    end
  until now(MONOTONIC) > from + WAIT_SECONDS * 1e9
  log.real, log.cpu, log.ready = now(MONOTONIC) - from, now(THREAD_CPUTIME) - cpu, delay() - ready
  stop()
end

-- -- Waits of coroutines: how far the profile is off, and the truth; nanoseconds --

local TURNS = 3000

function kinds.coroutines()
  local truth = require("coroutine_truth")
  local list = {}
  for k in ipairs(COSTS) do
    local f = truth.body_of(("co%d.lua"):format(k), 2)
    list[k] = truth.new(f(truth.now, truth.goes_on, coroutine.yield, 1e9))
  end
  assert(truth.start { mode = "C", clock = CLOCK, path = PROFILE })
  for _ = 1, TURNS do
    truth.resume(list[math.random(#list)])
    local kind = math.random(20)
    if kind == 1 then truth.sleep(math.random(300)) elseif kind < 5 then truth.compute(math.random(100000)) end
  end
  assert(truth.stop())
  local r = misc.sysprof.report()
  log.clock, log.limit = r.clock, r.limit
  local got = truth.sums(PROFILE, truth.line_of)
  for key, one in pairs(truth.known()) do
    local g = got[key] or { ns = 0, waits = 0 }
    table.insert(log.parts, { most = one.most, off = truth.error(one, g.ns), waits = one.n, seen = g.waits })
  end
end

jit.off(kinds[KIND])
kinds[KIND]()
print_table(log, "return ", "")
