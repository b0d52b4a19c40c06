----------------------------------------------------------------------------
-- Truth about waits of coroutines: a program that measures its own waits, and their comparison with
-- a profile of the event coroutine-wait.
--
-- A wait begins between t0, read in the coroutine just before its yield, and s0, read by the
-- resumer when the coroutine has yielded. It ends between s1, read just before the next resume, and
-- t1, read in the coroutine after its yield. So a profile has from s1 - s0 to t1 - t0.
--
-- Waits have keys: the text of a stack, or "file:first line:line" of the innermost Lua function.
----------------------------------------------------------------------------

local ffi = require("ffi")
local json = require("json_decode")
local t = require("tools_test")

local truth = {}

ffi.cdef [[
typedef struct { long s, ns; } coroutine_time;
int clock_gettime(int id, coroutine_time *now);
int usleep(unsigned us);
typedef struct { long others[16], voluntary, involuntary; } coroutine_switches;
int getrusage(int who, coroutine_switches *usage);
]]
local MONOTONIC, THREAD_CPUTIME = 1, 3
local RUSAGE_THREAD = 1
local ts = ffi.new("coroutine_time")

-- Of a wait. The profile reads the processor's counter. It sets the counter's rate by pairs of reads
-- some 25 ns apart, and again at the end of each long wait. So a time is wrong by two such
-- distances at most. Each sum and each sample loses less than 1 ns.
local SLACK_NS = 100

local function clock(id)
  ffi.C.clock_gettime(id, ts)
  return tonumber(ts.s) * 1e9 + tonumber(ts.ns)
end

function truth.now() return clock(MONOTONIC) end

-- A tick on the way into the call ends it before it sleeps.
function truth.sleep(us)
  local till = clock(MONOTONIC) + us * 1000
  repeat ffi.C.usleep(us) until clock(MONOTONIC) >= till
end

-- Computes for some nanoseconds of CPU time.
function truth.compute(ns)
  local till = clock(THREAD_CPUTIME) + ns
  while clock(THREAD_CPUTIME) < till do end
end

-- Returns how often the thread has slept: its voluntary context switches.
local usage = ffi.new("coroutine_switches")
function truth.sleeps()
  ffi.C.getrusage(RUSAGE_THREAD, usage)
  return tonumber(usage.voluntary)
end

local now = truth.now

-- -- What the program measures ---------------------------------------------

local all = {}	-- By key: { n =, least =, most = }.
local on = false	-- A profile runs.
local begun_least, begun_most	-- The profile began between these.

local function of_key(key)
  all[key] = all[key] or { n = 0, least = 0, most = 0 }
  return all[key]
end

-- Starts a profile. Returns what start returns.
function truth.start(options)
  all = {}
  begun_least = now()
  local ok, err = misc.sysprof.start(options)
  begun_most, on = now(), ok
  return ok, err
end

function truth.stop()
  on = false
  return misc.sysprof.stop()
end

-- In a coroutine: its yield has returned.
function truth.goes_on(key, t0)
  local t1 = now()
  if not on then return end
  local one = of_key(key)
  one.most = one.most + t1 - math.max(t0, begun_least)
end

-- Outside: a coroutine that has yielded is about to be resumed.
function truth.resumes(key, s0)
  local s1 = now()
  if not on then return end
  local one = of_key(key)
  one.n, one.least = one.n + 1, one.least + math.max(s1 - math.max(s0, begun_most), 0)
end

-- A coroutine whose yields tell their keys.
function truth.new(f) return { co = coroutine.create(f), s0 = nil, key = nil } end

-- Returns a chunk of (now, goes_on, yield, n, done), which makes a function that yields on several lines of its own file, n
-- times, then returns done().
function truth.body_of(name, yields)
  local lines = { "local now, goes_on, yield, n, done = ... return function() for i = 1, n do" }
  for i = 1, yields do
    local key = ("%s:1:%d"):format(name, i + 1)
    lines[#lines + 1] = ("do local t0 = now() yield(%q) goes_on(%q, t0) end"):format(key, key)
  end
  lines[#lines + 1] = "end return done() end"
  return assert(loadstring(table.concat(lines, "\n"), "@" .. name))
end

-- Resumes it by a function that is called like coroutine.resume. Returns what that returns.
function truth.resume(c, resume)
  if c.key then truth.resumes(c.key, c.s0) end
  local ok, key = (resume or coroutine.resume)(c.co)
  c.s0 = now()
  c.key = coroutine.status(c.co) == "suspended" and key or nil
  return ok, key
end

-- Returns what the program has measured since the start, by key: { n =, least =, most = }, nanoseconds.
function truth.known() return all end

-- -- What a profile has ----------------------------------------------------

-- Returns the samples of the event: list of { stack = list of frames, leaf = text of the leaf, or nil,
-- ns =, waits = }, and the decoded profile.
function truth.samples(path)
  local status, out, err = t.parse("--event=coroutine-wait --format=json " .. path)
  t.ok(status == 0 and (err == "" or err:find("no samples", 1, true)), ("%s: %s, %s"):format(path, status, err))
  local d, list = json.decode(out), {}
  for _, s in ipairs(d.samples) do
    if s.event == "coroutine-wait" then
      local stack, leaf = {}, nil
      for i, id in ipairs(d.stacks[s.stack + 1]) do stack[i] = d.frames[id + 1] end
      if #stack > 0 and stack[#stack].kind == "waiting" then leaf = table.remove(stack).name end
      list[#list + 1] = { stack = stack, leaf = leaf, ns = s.weight, waits = s.second_weight }
    end
  end
  return list, d
end

-- Returns the text of a frame: "file:first line:line" of a Lua function, the name of others.
function truth.frame_text(f)
  local is_lua = f.kind == "lua" or f.kind == "compiled"
  return is_lua and ("%s:%d:%d"):format(f.file, f.first_line, f.line) or f.name
end

-- Returns the key of the innermost Lua function, "" without one.
function truth.line_of(stack)
  for i = #stack, 1, -1 do
    if stack[i].file then return truth.frame_text(stack[i]) end
  end
  return ""
end

-- Returns the text of a whole stack.
function truth.stack_text(stack)
  local list = {}
  for i, f in ipairs(stack) do list[i] = truth.frame_text(f) end
  return table.concat(list, ";")
end

-- Returns the profile's sums by the keys that key_of gives for a stack: { ns =, waits = }, and the waits by leaf: "" has the
-- stack of a single wait.
function truth.sums(path, key_of)
  local got, leaves = {}, {}
  for _, s in ipairs(truth.samples(path)) do
    local key, leaf = key_of(s.stack), s.leaf or ""
    got[key] = got[key] or { ns = 0, waits = 0 }
    got[key].ns, got[key].waits = got[key].ns + s.ns, got[key].waits + s.waits
    leaves[leaf] = (leaves[leaf] or 0) + s.waits
  end
  return got, leaves
end

-- Returns how far off the sum of a key is: its bounds and the clock's resolution leave no doubt about so many nanoseconds.
function truth.error(one, ns)
  local slack = SLACK_NS * one.n
  return ns > one.most + slack and ns - one.most - slack or ns < one.least - slack and ns - one.least + slack or 0
end

-- Compares the profile with what the program has measured. key_of: returns the key of a stack. With
-- rest, the profile may have waits without a function: other lines can lack them. Returns the
-- profile's waits by leaf, and its sums by key.
function truth.check(path, key_of, what, rest)
  local got, leaves = truth.sums(path, key_of)
  local known, n, expected_n = 0, 0, 0
  for _, g in pairs(got) do n = n + g.waits end
  local first
  local function fail(key, text) first = first or ("%s: %s"):format(key, text) end
  for key, one in pairs(all) do
    local g = got[key] or { ns = 0, waits = 0 }
    expected_n = expected_n + one.n
    known = known + 1
    if g.waits > one.n or not rest and g.waits < one.n then fail(key, ("%d waits, expected %d"):format(g.waits, one.n)) end
    local off = truth.error(one, g.ns)
    if off > 0 or not rest and off < 0 then
      fail(key, ("%.0f ns, expected %.0f to %.0f"):format(g.ns, one.least, one.most))
    end
  end
  for key, g in pairs(got) do
    if not all[key] and not (rest and key == "") then fail(key, g.waits .. " waits, none expected") end
  end
  t.ok(not first, ("%s, %d keys: %s"):format(what, known, first))
  t.equal(n, expected_n, what .. ": waits")
  return leaves, got
end

return truth
