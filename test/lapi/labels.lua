-- Labels of coroutines: each sample has those of the coroutine that ran, for each event; 64 coroutines that
-- interleave, nested and wrapped ones, errors, coroutines that inherit. Sets are freed and used again, and 4,097 of
-- them are too many. Wrong labels are refused by a sentence each.
-- TIMEOUT: 300
-- By hand: labels.lua SEED.

local ffi = require("ffi")
local t = require("tools_test")
local labels = require("sysprof.model.labels")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local SEED = tonumber(arg[1]) or os.time()
math.randomseed(SEED)
print("seed " .. SEED)

ffi.cdef [[
  typedef struct { long sec, nsec; } labels_timespec;
  int clock_gettime(int, labels_timespec *);
  int usleep(unsigned);
  void luaM_sysprof_uselabels(const void *labelset);
]]
local sysprof = misc.sysprof
local label, labelset = sysprof.label, sysprof.labelset
local yield = coroutine.yield
local COUNT = 64

local ts = ffi.new("labels_timespec")
local function cpu_ns()
  ffi.C.clock_gettime(3, ts)	-- CLOCK_THREAD_CPUTIME_ID
  return tonumber(ts.sec) * 1e9 + tonumber(ts.nsec)
end

-- -- What coroutines do -----------------------------------------------------

local KINDS = {}

local function work(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  KINDS.kept = x
end
KINDS.work = work

function KINDS.alloc(n)
  for i = 1, n do KINDS.kept = { i, n } end
end

function KINDS.sleep() ffi.C.usleep(6000) end

-- A function in a file of its own: its samples show it.
local function body_of(k)
  return assert(loadstring([[
    local k, kinds, own, begin, yield = ...
    return function()
      begin(k)
      while true do
	local what, n = yield()
	while what do
	  local from = own()
	  kinds[what](n)
	  kinds.used[k] = (kinds.used[k] or 0) + own() - from
	  what, n = yield()
	end
      end
    end]], ("@co%d.lua"):format(k)))
end

-- The same of a function that resumes another coroutine, which has no label of its own.
local function outer_of(k)
  return assert(loadstring([[
    local k, inner, begin, yield = ...
    return function(...)
      begin(k)
      local what, n = ...
      while true do
	assert(coroutine.resume(inner, what, n))
	what, n = yield()
      end
    end]], ("@co%d.lua"):format(k)))
end

-- Each way to get a label. The coroutines of the last one have it from their creator.
local function begin(k)
  local way = k % 4
  if way == 0 then
    label { n = k, even = k % 2 == 0 }
  elseif way == 1 then
    label(labelset { n = k, even = k % 2 == 0 })
  elseif way == 2 then
    ffi.C.luaM_sysprof_uselabels(labelset { n = k, even = k % 2 == 0 })
  end
end

local function new(k)
  local old = label()
  if k % 4 == 3 then label { n = k, even = k % 2 == 0 } end
  local is_nested = k % 5 == 1
  local f = body_of(k)(k, KINDS, cpu_ns, is_nested and function() label(nil) end or begin, yield)
  local resume
  if k % 5 == 0 then
    resume = coroutine.wrap(f)
  elseif is_nested then
    resume = coroutine.wrap(outer_of(k)(k, coroutine.create(f), begin, yield))
  else
    local co = coroutine.create(f)
    resume = function(...) assert(coroutine.resume(co, ...)) end
  end
  label(old)
  resume()
  resume()	-- It waits for work.
  return resume
end

local list = {}
for k = 1, COUNT do list[k] = new(k) end
t.equal(label(), nil, "the main coroutine has no label")

-- -- Samples ----------------------------------------------------------------

-- Checks that each sample has the label of its coroutine. Returns the weights by label, and their sum. own: a
-- coroutine without label has none, whoever resumes it.
local function check(path, event, what, own)
  local p = assert(reader.read(path))
  local v = assert(view.new(p, { event = event, weight = "event" }))
  local sums, all, wrong, without, n = {}, 0, 0, 0, 0
  v:each_joined(function(parts, count, value, slot)
    local of, is_broken
    for i = 1, count do
      local name = v.symbols:name(parts[i]).text
      of = of or name:match("co(%d+)%.lua:")
      is_broken = is_broken or name:find("^%[.*unknown")
    end
    local set = p.slots:labels(slot)
    local got = labels.value(set, "n")
    n = n + p.slots:samples(slot)
    if of and got == nil and not (own and of % 5 == 1) then
      without = without + p.slots:samples(slot)
    elseif got ~= of and not (is_broken and not of) and not (own and got == nil) then
      wrong = wrong + p.slots:samples(slot)
    end
    if got and labels.value(set, "even") ~= tostring(got % 2 == 0) then wrong = wrong + 1 end
    sums[got or ""] = (sums[got or ""] or 0) + value
    all = all + value
  end)
  print(("%s: %d samples, %d with another's label, %d without"):format(what, n, wrong, without))
  t.equal(wrong, 0, what .. ": samples with another's label")
  t.equal(without, 0, what .. ": samples without label")
  t.ok(n > 20, what .. ": samples")
  return sums, all, n
end

local function start(clock, options)
  local o = options or {}
  o.mode, o.clock, o.path = "C", clock, "labels.bin"
  assert(sysprof.start(o))
end

local function stop()
  assert(sysprof.stop())
end

-- Runs coroutines in random order.
local function run(turns, what, amount)
  KINDS.used = {}
  for _ = 1, turns do
    local k = math.random(COUNT)
    list[k](what, amount(k))
  end
end

local function share_check(sums, all, n, truth, what)
  local total = 0
  for _, v in pairs(truth) do total = total + v end
  local labelled = 0
  for key, v in pairs(sums) do
    if key ~= "" then labelled = labelled + v end
  end
  t.ok(labelled > all * 0.9, what .. ": most has labels")
  for k, v in pairs(truth) do
    local share = v / total
    local error = math.sqrt(share * (1 - share) / n)
    local got = (sums[tostring(k)] or 0) / labelled
    t.ok(math.abs(got - share) < 4.5 * error + 2 / n,
	 ("%s: share of %d is %.4f, expected %.4f +- %.4f"):format(what, k, got, share, error))
  end
end

for _, with_jit in ipairs { true, false } do
  local name = with_jit and ", JIT" or ", no JIT"
  if with_jit then jit.on() else jit.off() end
  jit.flush()
  start("cpu", { hz = 2000 })
  run(4000, "work", function(k) return (with_jit and 200000 or 20000) * (1 + k % 3) end)
  stop()
  local sums, all, n = check("labels.bin", "cpu", "cpu" .. name)
  share_check(sums, all, n, KINDS.used, "cpu" .. name)

  start("alloc", { period = 20000 })
  run(3000, "alloc", function(k) return 500 + k % 40 * 50 end)
  stop()
  sums = check("labels.bin", "alloc", "bytes" .. name)
  t.ok(sums["7"] > 0, "bytes")
  for _, threshold in ipairs { 0, 1000000000 } do
    start(("coroutine-wait/threshold=%d/"):format(threshold))
    run(3000, "work", function() return 300 end)
    stop()
    check("labels.bin", "coroutine-wait", ("waits of at least %d ns"):format(threshold) .. name, true)
  end
  start("cpu,offcpu")
  run(200, "sleep", function() return 1 end)
  stop()
  check("labels.bin", "offcpu", "offcpu" .. name)
end
jit.on()

-- -- Inheritance, errors, changes -------------------------------------------

local function of_thread(co)
  local got
  local ok, err = coroutine.resume(co, function(now) got = now end)
  t.ok(ok, tostring(err))
  return got
end
local a, b, none = labelset { route = "/a" }, labelset { route = "/b" }, labelset {}
local function report(f) f(label()) end

t.equal(label(a), nil, "no label before")
t.equal(label(b), a, "the set before")
t.equal(label(a), b, "the set before")
t.equal(labelset { route = "/a" }, a, "equal sets are one")
t.equal(label { route = "/a" }, a, "the same set")
t.equal(of_thread(coroutine.create(report)), a, "a coroutine inherits")
local inner
local outer = coroutine.create(function(f) label(b) inner = coroutine.create(report) f(label()) end)
t.equal(of_thread(outer), b, "a coroutine has its own label")
t.equal(of_thread(inner), b, "it inherits from its creator, not from the main coroutine")
t.equal(label(), a, "the label of the one that runs stays")
t.equal(label(nil), a, "no label")
t.equal(label(), nil, "no label")
t.equal(of_thread(coroutine.create(report)), nil, "no label to inherit")
ffi.C.luaM_sysprof_uselabels(a)
t.equal(label(), a, "by FFI")
ffi.C.luaM_sysprof_uselabels(none)
t.equal(label(), nil, "the empty set is no label")
ffi.C.luaM_sysprof_uselabels(nil)
t.equal(label(none), nil, "the empty set is no label")
t.equal(label(), nil, "the empty set is no label")
local failing = coroutine.create(function() label(b) error("x") end)
t.equal(coroutine.resume(failing), false, "error")
t.equal(label(), nil, "an error leaves other labels alone")
label(a)
failing, outer, inner = nil, nil, nil
a = nil
collectgarbage()
collectgarbage()
t.equal(label(), labelset { route = "/a" }, "a coroutine holds its set")
label(nil)

-- Compiled: a loop that switches labels by FFI.
local function switch(n)
  for _ = 1, n do
    ffi.C.luaM_sysprof_uselabels(b)
    ffi.C.luaM_sysprof_uselabels(none)
  end
end
switch(1e5)
t.equal(label(), nil, "compiled")

-- -- Many sets --------------------------------------------------------------

-- Returns the rows of a report by one label.
local function report_of(key)
  local command = "'%s' '%s/tools/luajit-sysprof.lua' report --by=label:%s labels.bin"
  local status, out = t.shell(command:format(t.luajit, t.source, key))
  t.equal(status, 0, "report")
  return out
end

local function busy_with(labels_of_work)
  label(labels_of_work)
  KINDS.work(3e7)
  label(nil)
end

-- Objects hold no set: those of garbage, and those that a program keeps.
local kept = {}
start("cpu", { hz = 2000 })
for i = 1, 20000 do
  label { request = i }
  if i % 2 == 0 then kept[#kept + 1] = labelset { kept = i } end
end
busy_with(kept[1])
stop()
t.equal(sysprof.report().limit:find("labels", 1, true), nil, "30,000 sets have room")
t.contains(report_of("kept"), "  2\n", "a set that had to give its number away")

list = nil
collectgarbage()
local holders = {}
for i = 1, 4096 do
  holders[i] = coroutine.wrap(function() label { id = i } yield() end)
  holders[i]()
end
start("cpu", { hz = 2000 })
busy_with { id = "one too many" }
busy_with { id = 4096 }
KINDS.work(3e7)
stop()
local out = report_of("id")
t.contains(out, "  [other]\n", "4,097 sets")
t.contains(out, "  [no label]\n", "no label")
t.contains(out, "  4096\n", "the last set")
t.contains(sysprof.report().limit, "labels: 1 calls found 4096 sets in use, and set [other]", "told")
local last = labelset { id = "one too many" }
holders = nil
collectgarbage()
collectgarbage()
start("cpu", { hz = 2000 })
busy_with { id = "room again" }
busy_with(last)
stop()
t.contains(report_of("id"), "room again", "sets are free again")
t.contains(report_of("id"), "one too many", "a set that had no room")

-- -- Texts ------------------------------------------------------------------

start("cpu", { hz = 2000 })
label { text = "\27[31m\255" .. ("\195\164"):rep(500000), ["k\n"] = 7, x = true, y = 2.5, z = "" }
KINDS.work(3e7)
label(nil)
stop()
local p = assert(reader.read("labels.bin"))
local set
for i = 1, p.slots:count() do set = set or p.slots:labels(i) end
t.equal(labels.value(set, "text"), "?[31m\\xff" .. ("\195\164"):rep(91) .. "", "cut between characters")
t.equal(labels.value(set, "k?"), "7", "number")
t.equal(labels.value(set, "x"), "true", "boolean")
t.equal(labels.value(set, "y"), "2.5", "number")
t.equal(labels.value(set, "z"), "", "empty")

-- -- What is refused --------------------------------------------------------

local cyclic = {}
cyclic.self = cyclic
local many = {}
for i = 1, 17 do many["k" .. i] = i end
for i, case in ipairs {
  { { cyclic }, "label 'self' is a table; expected a string, a number or a boolean" },
  { { { f = print } }, "label 'f' is a function; expected a string, a number or a boolean" },
  { { { f = 7LL } }, "label 'f' is a cdata; expected a string, a number or a boolean" },
  { { { ["\27"] = {} } }, "label '?' is a table; expected" },
  { { { [("k"):rep(1e6)] = {} } }, "label '" .. ("k"):rep(48) .. "' is a table; expected" },
  { { { "x" } }, "the key of a label is a number; expected a string" },
  { { { [""] = 1 } }, "the key of a label is empty; expected a name" },
  { { many }, "a set has more than 16 labels; expected fewer" },
  { { "x" }, "expected a table" }, { { 7 }, "expected a table" }, { { print }, "expected a table" },
  { { io.stdout }, "the labels are a userdata; expected a table" },
} do
  for _, f in ipairs { label, labelset } do
    local ok, err = pcall(f, case[1][1])
    t.equal(ok, false, "refused " .. i)
    t.contains(err, case[2], "refused " .. i)
  end
end
do
  local foreign, meta = newproxy(true), debug.getmetatable(b)
  debug.setmetatable(foreign, meta)
  t.contains(select(2, pcall(label, foreign)), "expected a table", "a foreign userdata")
  debug.setmetatable(foreign, nil)
end
t.equal(label(), nil, "what is refused changes nothing")
t.equal(pcall(labelset, nil), false, "no set")
t.equal(getmetatable(b), false, "the metatable is hidden")

t.finish()
