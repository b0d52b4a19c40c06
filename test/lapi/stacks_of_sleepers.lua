-- Random programs wait at the end of random chains of calls: through pcall, coroutines, metamethods,
-- sort and gsub, iterators, FFI callbacks and error handlers, interpreted and compiled. For each
-- chain, the profile has the time that the program has measured, or says that it does not know the
-- stack. No chain has time of another one.
-- TIMEOUT: 300
-- WAITS: most of its time
-- By hand: stacks_of_sleepers.lua SEED WAITS.

local ffi = require("ffi")
local t = require("tools_test")

local SEED, WAITS = tonumber(arg[1]) or os.time(), tonumber(arg[2]) or 400
local SHORTEST, LONGEST = 3, 12	-- Of a wait, in ms.
-- The program reads its clock before and after the system call, a few us apart. On a busy machine
-- another program may run in between.
local SLACK_NS = 1e6

ffi.cdef [[
int usleep(unsigned us);
typedef struct { long s, ns; } sleepers_time;
int clock_gettime(int id, sleepers_time *now);
typedef int (*sleepers_compare)(const void *, const void *);
void qsort(void *base, size_t n, size_t size, sleepers_compare compare);
]]
local MONOTONIC = 1
local ts, words = ffi.new("sleepers_time"), ffi.new("int[2]", 2, 1)
local function now_ns()
  ffi.C.clock_gettime(MONOTONIC, ts)
  return tonumber(ts.s) * 1e9 + tonumber(ts.ns)
end

-- Ways to call go(). Each function of one has its number as the name of its chunk.
local WAYS = {
  "return function(go) return (go()) end",
  "return function(go) assert(pcall(go)) end",
  "return function(go) coroutine.wrap(function() go() end)() end",
  "return function(go) local x = setmetatable({}, { __index = function() go() return 1 end }).x return x end",
  "return function(go) table.sort({ 1, 2 }, function(a, b) go() return a < b end) end",
  "return function(go) local _ = ('a'):gsub('a', function() go() end) end",
  [[return function(go) local co = coroutine.create(function() coroutine.yield() go() end)
    coroutine.resume(co) assert(coroutine.resume(co)) end]],
  "return function(go) for _ in function(_, i) if not i then go() return 1 end end do end end",
  "return function(go) return setmetatable({}, { __add = function() go() return 1 end }) + 1 end",
  "return function(go) xpcall(function() error('x') end, function() go() end) end",
  "return function(go) return go() end",	-- A tail call: the function is not in the stack.
  "return function(go, ...) local n = select('#', ...) go() return n end",
  [[local ffi, words = require('ffi'), ...
    return function(go)
      local compare = ffi.cast('sleepers_compare', function() go() return 0 end)
      ffi.C.qsort(words, 2, 4, compare)
      compare:free()
    end]],
}
local TAIL = 11
local way = {}
for i, code in ipairs(WAYS) do way[i] = assert(loadstring(code, "=f" .. i .. "."))(words) end

local plan, depth, truth, all = nil, 0, {}, 0

local function wait()
  local before = now_ns()
  ffi.C.usleep(math.random(SHORTEST, LONGEST) * 1000)
  local ns = now_ns() - before
  local names = {}
  for _, i in ipairs(plan) do
    if i ~= TAIL then names[#names + 1] = "f" .. i end
  end
  local chain = table.concat(names, ";")
  truth[chain] = (truth[chain] or 0) + ns
  all = all + ns
end

local function go()
  depth = depth + 1
  local i = plan[depth]
  if i then way[i](go, depth) else wait() end
  depth = depth - 1
end

math.randomseed(SEED)
print(("seed %d, %d waits"):format(SEED, WAITS))
local random = {}	-- Drawn before, so that the program only waits.
for n = 1, WAITS do
  random[n] = {}
  for j = 1, math.random(0, 6) do random[n][j] = math.random(#WAYS) end
end
assert(misc.sysprof.start { mode = "C", clock = "offcpu", path = "sleepers.bin" })
for n = 1, WAITS do
  plan, depth = random[n], 0
  go()
end
assert(misc.sysprof.stop())

-- A chain of a folded stack: functions of a way that stand side by side are of one call.
local function chain_of(stack)
  local names, last = {}, nil
  for frame in stack:gmatch("[^;]+") do
    local name = frame:match("%(?(f%d+)%.:%d+%)?$")
    if name and name ~= last then names[#names + 1] = name end
    if name then last = name
    elseif frame:find("^go %(.*stacks_of_sleepers") then last = nil end
  end
  return table.concat(names, ";")
end

local status, folded, err = t.parse("--event=offcpu sleepers.bin")
t.equal(status .. err, "0", "the reader")
local seen, unknown = {}, 0
for stack, ns in folded:gmatch("([^\n]*) (%d+)\n") do
  if stack:find(";usleep;", 1, true) then
    t.ok(stack:find(";wait %([^;]*stacks_of_sleepers%.lua:%d+%);"), "wait is there: " .. stack)
    local chain = chain_of(stack)
    seen[chain] = (seen[chain] or 0) + tonumber(ns)
  else
    t.ok(stack:find("^%[[%w ]+%]$") or stack:find("^%[stack unknown: [%w ]+%]$"), "known or not: " .. stack)
    unknown = unknown + tonumber(ns)
  end
end
-- A sample keeps 1064 frames, the leaf among them. Of a deeper stack both ends are there.
local function deep(n)
  if n == 0 then ffi.C.usleep(30000) return 0 end
  return 1 + deep(n - 1)
end
-- On a busy machine the profiler may come too late for each wait of a profile.
local DEADLINE = os.time() + 120
local function deep_stack(n)
  local stack
  repeat
    assert(misc.sysprof.start { mode = "C", clock = "offcpu", path = "deep.bin" })
    for _ = 1, 10 do deep(n) end
    assert(misc.sysprof.stop())
    stack = ("\n" .. select(2, t.parse("--no-host deep.bin"))):match(
      "\n[^\n]*main chunk ([^\n]*;%[waiting: clock_nanosleep%]) %d+\n")
    if stack then return stack end
  until os.time() > DEADLINE
  error(n .. " frames: no stack is known:\n" .. select(2, t.parse("--no-host deep.bin")))
end
local function check_deep(n)
  local stack = deep_stack(n)
  local frames = select(2, stack:gsub(";deep ", ""))
  t.ok(frames >= math.min(n, 1000), ("%d of %d frames"):format(frames, n))
  return stack:find(";[lua frames left out];", 1, true) ~= nil
end
t.equal(check_deep(1050), false, "1050 frames are whole")
for n = 1055, 1065 do check_deep(n) end	-- The last one that is whole, and the first one that is not.
t.equal(check_deep(3000), true, "3000 frames are not")

local known = 0
for chain, ns in pairs(seen) do
  known = known + ns
  t.ok(truth[chain], "the program has waited there: " .. chain)
  t.ok(ns <= (truth[chain] or 0) + SLACK_NS,
       ("%s: %.3f ms, but the program has measured %.3f ms"):format(chain, ns / 1e6, (truth[chain] or 0) / 1e6))
end
print(("%.3f s in known stacks, %.3f s in unknown ones, %.3f s measured"):format(known / 1e9, unknown / 1e9,
  all / 1e9))
t.ok(known > 0, "some stacks are known")
t.ok(math.abs(known + unknown - all) < all / 50, "all time is there")
t.finish()
