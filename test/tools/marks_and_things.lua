-- Marks are counted. Things that samples begin are followed until they end.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local json = require("json_decode")
local memory = require("sysprof.show.memory")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local uleb = B.uleb

local FIELDS = { { G.SPF_FIELD_THING, "object" }, { G.SPF_FIELD_COUNT, "objects" } }
local GONE, DROPPED = G.SPF_ENDED_GONE, G.SPF_ENDED_DROPPED

local function render(p, format)
  local out = {}
  require("sysprof.formats." .. format).render(view.new(p), function(s) out[#out + 1] = s end)
  return table.concat(out)
end

local function read(bytes, options)
  local p = assert(reader.parse_string(bytes, options or { timeline = true }))
  t.equal(p:problem_text(), nil, "complete")
  return p
end

local function new(session)
  return B.new(session):context(7, 0):meta("clock", "alloc"):meta("pid", "7")
    :event(0, "alloc", G.SPF_UNIT_BYTES, 1024, FIELDS)
end

-- Returns what is known of the things of the event alloc, and what is left of them, as one text.
local function things(p)
  local list, text = events.list(p), ""
  for _, e in ipairs(list) do
    local all = e.name == "alloc" and e.things
    if all then text = text .. ("%d %d %d"):format(all.began, all.ended, all.dropped) end
    if e.of == "alloc" then
      text = text .. (", %d: %.0f, %.0f"):format(e.samples, e.weight, e.second_weight)
    end
  end
  return text
end

-- Each unit has things that are left: no output fails.
for _, unit in ipairs { G.SPF_UNIT_COUNT, G.SPF_UNIT_US, G.SPF_UNIT_BYTES, G.SPF_UNIT_NS } do
  local b = B.new():context(7, 0):meta("clock", "alloc"):event(0, "alloc", unit, 1024, FIELDS)
  local p = read(b:sample(0, 0, 1, nil, 1000, 0, { 5, 10 }):finish())
  for _, format in ipairs { "json", "pprof", "folded", "flamegraph", "speedscope", "tree" } do
    t.ok(#render(p, format) > 0, ("unit %d: %s"):format(unit, format))
  end
  t.ok(#require("sysprof.show.selfreport").lines(p) > 0, ("unit %d: info"):format(unit))
end

-- -- Things ----------------------------------------------------------------

local function stream(session)
  local b = new(session)
  b:sample(0, 0, 1, nil, 1000, 0, { 5, 10 }):sample(0, 0, 1, nil, 2000, 0, { 6, 20 })
  b:sample(0, 0, 1, nil, 4000, 0, { 0, 40 })		-- Begins nothing.
  b:sample(0, 0, 1, nil, 8000, 0, { 2^45, 80 }):sample(0, 0, 1, nil, 16000, 0, { 7, 0 })
  b:flush():context(7, 10000, session and 0):event(0, "alloc", G.SPF_UNIT_BYTES, 1024, FIELDS)
  b:ended(0, GONE, { { 5, 2 }, { 99, 0 } }):ended(0, DROPPED, { { 2^45, 1 } }):ended(0, GONE, { { 5, 9 } })
  b:ended(1, GONE, { { 6, 1 } })			-- Of an event that there is not.
  b:sample(0, 0, 1, nil, 32000, 0, { 6, 160 })		-- The number again.
  return b
end

local p = read(stream():finish())
t.equal(things(p), "5 1 2, 2: 48000, 160", "things")
t.equal(#events.list(p), 2, "no other event")
t.contains(render(p, "top"), "\nalloc: ended       1 (1 after 2-3 cycles) of 5 tracked, 2 dropped, 2 left\n", "report")
local d = json.decode(render(p, "json"))
local e = d.events[1].things
t.equal(("%s %d %d %d %d"):format(e.name, e.began, e.ended, e.dropped, e.ended_after["2-3 cycles"]),
	"object 5 1 2 1", "json")
e = d.events[2]
t.equal(("%s of %s, %s, %d: %d, %d %s"):format(e.name, e.left_of, e.unit, e.samples, e.weight, e.second_weight,
  e.second), "object of alloc, bytes, 2: 48000, 160 objects", "json: what is left")
t.equal(things(read(stream():finish(), {})), "5 1 2, 2: 48000, 160", "without single samples")
t.equal(things(read(stream():finish(), { from = 0, to = 2500 })), "2 1 0, 1: 2000, 20", "a part of the time")

-- Numbers belong to a session.
local two = stream(0):finish() .. stream(1):finish():sub(#B.PROLOGUE + 1)
t.equal(things(read(two)), "10 2 4, 4: 96000, 320", "two sessions")
t.with_file(two, function(path)
  t.equal(things(reader.read_all { path, path }), "20 4 8, 8: 192000, 640", "two profiles")
end)

-- Another event of the same index has things of its own.
local b = new():sample(0, 0, 1, nil, 1000, 0, { 5, 10 })
b:event(0, "wait", G.SPF_UNIT_NS, 1024, FIELDS):sample(0, 0, 1, nil, 3000, 0, { 5, 1 }):ended(0, GONE, { { 5, 0 } })
p = read(b:finish())
t.equal(things(p), "1 1 0, 0: 0, 0, 1: 1000, 10", "another event of the index, and the one before it")

-- Many that come and go.
b = new()
for i = 1, 5000 do
  b:sample(0, 0, 1, nil, 10, 0, { i, 1 })
  if i > 100 then b:ended(0, GONE, { { i - 100, 0 } }) end
end
t.equal(things(read(b:finish())), "5000 4900 0, 100: 1000, 100", "many")

-- Things with sizes stand for more: n/p bytes and 1/p objects. Ages come from the counters.
local SIZED = { { G.SPF_FIELD_SIZE, "size" }, { G.SPF_FIELD_THING, "live" }, { G.SPF_FIELD_CYCLE, "cycle" },
		{ G.SPF_FIELD_COUNT, "objects" } }
local FIRST = G.SPF_COUNTER_EVENT
local function sized(counters, ...)
  local x = B.new():context(7, 0):meta("clock", "alloc"):meta("pid", "7")
    :event(0, "alloc", G.SPF_UNIT_BYTES, counters.period or 1000, SIZED)
  if counters.start then x:meta("start_time", counters.start) end
  for i, size in ipairs { ... } do x:sample(0, 0, 1, nil, nil, 0, { size, i, i, 1 }) end
  return read(x:counters(counters):finish())
end
local function p_of(size, period) return 1 - math.exp(-size / period) end

p = sized({}, 500)
t.equal(things(p), ("1 0 0, 1: %.0f, %.0f"):format(500 / p_of(500, 1000), 1 / p_of(500, 1000)), "a size")
p = sized({ { FIRST + G.SPF_EVENT_LEFT_PERIOD, 8000 }, { FIRST + G.SPF_EVENT_CYCLES, 7 }, { FIRST + G.SPF_EVENT_HELD, 1e6 } },
	  500, 16, 0, 20000)
local weight = 500 / p_of(500, 8000) + 16 / p_of(16, 8000) + 20000 / p_of(20000, 8000)
local objects = 1 / p_of(500, 8000) + 1 / p_of(16, 8000) + 1 / p_of(20000, 8000)
t.equal(things(p), ("4 0 0, 4: %.0f, %.0f"):format(weight, objects), "sizes, by a longer period")
local variance = (500 / p_of(500, 8000))^2 * (1 - p_of(500, 8000)) + (16 / p_of(16, 8000))^2 * (1 - p_of(16, 8000)) +
		 (20000 / p_of(20000, 8000))^2 * (1 - p_of(20000, 8000))
d = json.decode(render(p, "json"))
t.equal(d.events[2].standard_error, math.floor(math.sqrt(variance) + 0.5), "standard error")
t.equal(d.events[2].total, 1e6, "what the VM holds")
variance = 0
for _, size in ipairs { 500, 16, 20000 } do variance = variance + (1 - p_of(size, 8000)) / p_of(size, 8000) ^ 2 end
t.contains(render(p, "top"), (", %.0f +- %.0f objects; one in"):format(objects, 1.959964 * math.sqrt(variance)), "error of objects")
local ages = {}
for _, s in ipairs(d.samples) do
  if s.event == "live" then ages[#ages + 1] = s.labels.age end
end
t.equal(table.concat(ages, ", "), "4-7 cycles, 4-7 cycles, 4-7 cycles, 2-3 cycles", "ages")
t.contains(render(p, "top"), "\nlive: the rest     ", "report: the rest")

-- Old blocks: ages come by powers of two.
local function older(profile, cycles, options)
  options = options or {}
  options.older = cycles
  return view.new(profile, options)
end
for cycles, n in pairs { [1] = 4, [2] = 4, [4] = 3, [8] = 0 } do
  local v = assert(older(p, cycles))
  t.equal(v.event.name, "live", "--older chooses the event")
  local found = 0
  v:each(function(_, _, _, slot) found = found + p.slots:samples(slot) end)
  t.equal(found, n, ("blocks of at least %d cycles"):format(cycles))
  if n == 0 then
    t.equal(v:nothing_text(), "no sample passes the filters: nothing has lived through 8 cycles of the collector; " ..
	    "the oldest: 4-7 cycles", "nothing is as old")
  end
end
-- The head tells what all blocks are, and how often the collector has run.
for weight, shown in pairs { event = "15.9 KiB of 37.2 KiB live, 3 samples", objects = "517 of 518 live objects",
			    samples = "3 of 4 live samples" } do
  local parts = {}
  require("sysprof.formats.top").render(assert(older(p, 4, { weight = weight })), function(s) parts[#parts + 1] = s end)
  t.contains(table.concat(parts), shown .. "; the collector ran 7 cycles\n", "older by " .. weight)
end
t.equal(select(2, older(p, 4, { event = "alloc" })),
	"the event 'alloc' has no ages; choose an event with ages, such as live", "ages of another event")
t.equal(select(2, older(read(stream():finish()), 4, { event = "object" })),
	"the profiler that wrote this did not note the ages of 'object'; --older needs them", "things without ages")

-- What is left is an estimate: it may be more than the VM holds.
p = sized({ { FIRST + G.SPF_EVENT_HELD, 1000 } }, 20000)
t.contains(render(p, "top"), "\nlive: the rest     about 0 B +- ", "an estimate above what the VM holds")

-- Nothing left has a sample: that bounds the bytes, and is no exact 0.
local HELD = FIRST + G.SPF_EVENT_HELD
local NO_SAMPLES, SURE = "no samples: up to %s; one in 1000 B asked", " with 95 % confidence"
for _, case in ipairs { { 1e6, "2.9 KiB" .. SURE .. " of 976.6 KiB that the VM holds", "973.6 KiB to 976.6 KiB" .. SURE },
			{ 1000, "1000 B of 1000 B that the VM holds", "0 B to 1000 B" }, { nil, "2.9 KiB" .. SURE } } do
  p = sized({ { FIRST + G.SPF_EVENT_TOTAL, 500 }, case[1] and { HELD, case[1] } or nil })
  local top = render(p, "top")
  t.contains(top, "\nevent live         " .. NO_SAMPLES:format(case[2]) .. "\n", "no samples: report")
  if case[3] then
    t.contains(top, "\nlive: the rest     " .. case[3] .. ": from before the start\n", "the rest")
  end
  t.ok(not top:find("+-", 1, true), "no samples: no error")
  local e = json.decode(render(p, "json")).events[2]
  t.equal(("%s %s"):format(e.standard_error, e.at_most), "nil " .. math.min(3000, case[1] or 3000), "no samples: json")
end

-- Allocations that were lost may still be live: then nobody knows the error.
for _, what in ipairs { { 20000 }, {} } do
  p = sized({ { HELD, 1e6 }, { FIRST + G.SPF_EVENT_LOST_ENDS, 3 } }, unpack(what))
  local top = render(p, "top")
  t.ok(not top:find("+-", 1, true) and not top:find("confidence", 1, true), "lost: no error: " .. top)
  t.contains(top, " that the VM holds, error unknown: allocations were lost", "lost: report")
  t.ok(top:find("\nlive: the rest [^\n]*B, error unknown: from before the start\n"), "lost: the rest: " .. top)
  local e = json.decode(render(p, "json")).events[2]
  t.equal(("%s %s"):format(e.standard_error, e.at_most), "nil nil", "lost: json")
end

-- A period that grew for a while makes the bound larger.
p = sized({ { FIRST + G.SPF_EVENT_TOTAL, 500 }, { FIRST + G.SPF_EVENT_LONGEST, 64000 } })
t.equal(json.decode(render(p, "json")).events[2].at_most, 192000, "no samples: the longest period")
t.contains(render(p, "top"), "no samples: up to 187.5 KiB" .. SURE, "no samples: the longest period, report")

-- A comparison tells how sure each side is, and what the VMs hold. Without samples it tells no change.
local function compared(before, after, format, event)
  local options = { event = event or "live", weight = "event", brief = true, by = "lua" }
  local v, out = view.new(after, options), {}
  v:compare_with(view.new(before, options))
  require("sysprof.formats." .. (format or "top")).render(v, function(s) out[#out + 1] = s end)
  return table.concat(out):gsub("\n +", " ")
end
local some, none = sized({ { HELD, 1e6 } }, 500), sized({ { HELD, 2e6 }, { FIRST + G.SPF_EVENT_TOTAL, 500 } })
local error_text = memory.left_text(events.choose(some, "live"), true)
t.ok(error_text:find("^%d+ samples?, [%d.]+ %a+ %+%- [%d.]+ %a+ of "), "the error")
local shown = compared(some, none)
t.contains(shown, "\nsampled   1.2 KiB before, no samples after\n", "no samples after")
t.contains(shown, "\nbefore    " .. error_text .. "\n", "error before")
t.contains(shown, "\nafter     " .. NO_SAMPLES:format("2.9 KiB" .. SURE .. " of 1.9 MiB that the VM holds") .. "\n", "most after")
t.contains(shown, "event     live\nheld      976.6 KiB before, 1.9 MiB after: 100.0% more\n", "what the VMs hold, first")
local REST = "; each profile tracks its own blocks alone, so only 'held' tells growth\n"
t.contains(shown, "\nthe rest  975.3 KiB before, 1.9 MiB after: from before the starts" .. REST, "what nobody tracked")
t.contains(compared(some, none, nil, "alloc"), "\nheld      976.6 KiB before, 1.9 MiB after: 100.0% more\nthe rest  ",
	   "what the VMs hold, beside allocations")
local function dumped(start)
  return sized({ { HELD, 1e6 }, start = start }, 500)
end
t.contains(compared(dumped("1000"), dumped("1001")), "\nthe rest  ", "two profiles of a program")
t.ok(not compared(dumped("1000"), dumped("1000")):find("\nthe rest"), "two dumps of a profile")
t.ok(not compared(sized({ { HELD, 1300 } }, 500), sized({ { HELD, 1400 } }, 500)):find("\nthe rest"), "no rest beyond chance")
t.contains(compared(none, some), "\nsampled   no samples before, 1.2 KiB after\n", "no samples before")
t.contains(compared(none, none), "\nsampled   no samples before, no samples after\n", "no samples at all")
t.contains(compared(some, some), "\nsampled   1.2 KiB before, 1.2 KiB after: the same\n", "samples of both")
t.contains(compared(some, some, "svg"), ">more than before</text>", "a picture of amounts")
t.ok(not compared(some, sized({}, 500)):find("\nheld"), "not known what the VM holds")

t.equal(things(sized({ period = 1 }, 500, 1, 3)), "3 0 0, 3: 504, 3", "the period 1")
b = B.new():context(7, 0):meta("clock", "alloc"):event(0, "alloc", G.SPF_UNIT_BYTES, 1000, SIZED)
b:sample(0, 0, 1, nil, 5000, 0, { 500, 1, 0, 10 }):sample(0, 0, 1, nil, 1271, 0, { 500, 2, 0, 1 })
t.equal(things(read(b:finish())), ("2 0 0, 2: %.0f, %.0f"):format(5000 + 500 / p_of(500, 1000), 10 + 1 / p_of(500, 1000)),
	"a sample with a longer period")
-- p is 9e-6 - (9e-6)^2 / 2, about.
t.equal(things(sized({ { FIRST + G.SPF_EVENT_LEFT_PERIOD, 1e6 } }, 9)), "1 0 0, 1: 1000005, 111112", "a small size")
t.equal(things(sized({ { FIRST + G.SPF_EVENT_LEFT_PERIOD, 1 } }, 2^52, 2^52, 2^52)), "3 0 0, 3: 13510798882111488, 3",
	"a sum above 2^53")

-- -- Events that begin late ------------------------------------------------

-- Returns a profile of 2 s: cpu, and alloc, which missed some microseconds. objects: samples of alloc.
local function late(missed_us, objects, pid)
  local x = B.new():context(7, 0):meta("clock", "cpu,alloc"):meta("pid", pid or "7")
    :event(0, "cpu", G.SPF_UNIT_US, 10000000):event(1, "alloc", G.SPF_UNIT_BYTES, 1000, SIZED)
  for i = 1, objects do x:sample(0, 0, 1, nil, 1000, 1, { 500, i, 0, 1 }) end
  local first = FIRST + G.SPF_COUNTER_EVENT_STEP
  return x:counters { { G.SPF_COUNTER_WALL_US, 2000000 }, { FIRST + G.SPF_EVENT_TOTAL, 1500000 },
		      { first + G.SPF_EVENT_TOTAL, objects * 1000 }, { first + G.SPF_EVENT_HELD, 0 },
		      { first + G.SPF_EVENT_MISSED_US, missed_us } }:finish()
end

local function lines_of(name, profile)
  local list = {}
  for line in render(profile, "top"):gmatch("[^\n]+") do
    local s = line:match("^event " .. name .. " +(.*)$")
    if s then list[#list + 1] = s end
  end
  return table.concat(list, "|")
end

p = read(late(2000000, 0))
local NEVER = "not recorded: the profiler met no Lua code outside of compiled code"
t.equal(lines_of("alloc", p), NEVER, "never")
t.equal(lines_of("live", p), NEVER, "never: what is left")
t.ok(not lines_of("cpu", p):find("not recorded"), "never: another event")
d = json.decode(render(p, "json"))
t.equal(d.events[2].name .. tostring(d.events[2].total), "allocnil", "never: json")
p = read(late(1500000, 2))
t.ok(lines_of("alloc", p):find("^2 samples, 2 KiB of 2 KiB .*; not recorded for 1%.500 s$"), "late: " .. lines_of("alloc", p))
t.ok(not lines_of("alloc", read(late(9999, 2))):find("not recorded"), "at once")
t.with_file(late(2000000, 0), function(never)
  t.with_file(late(0, 2, "8"), function(whole)
    p = reader.read_all { never, whole }
    t.ok(lines_of("alloc", p):find("^2 samples, .*; not recorded for 2%.000 s$"), "one of two: " .. lines_of("alloc", p))
    t.equal(lines_of("alloc", reader.read_all { never, never }), NEVER, "two of two")
    t.with_file(late(0, 2, "7"), function(vm)	-- Of the same process.
      p = reader.read_all { never, vm }
      t.ok(lines_of("alloc", p):find("^2 samples, .*; not recorded for 2%.000 s$"), "one of two VMs: " .. lines_of("alloc", p))
      t.ok(lines_of("live", p):find("^2 samples, "), "one of two VMs: " .. lines_of("live", p))
    end)
  end)
end)

-- -- Marks -----------------------------------------------------------------

b = new():mark(900, G.SPF_MARK_LABELS, 1):mark(5000, 99, 1, 2, 3):sample(0, 0, 1, nil, nil, 0, { 0, 0 })
b:mark(200, G.SPF_MARK_DUMP):mark(900, G.SPF_MARK_DUMP)
local bytes = b:finish()
p = read(bytes)
local list = {}
for i, mark in ipairs(json.decode(render(p, "json")).marks) do list[i] = mark.time .. " " .. mark.kind end
t.equal(table.concat(list, ", "), "200 dump, 900 labels, 900 dump, 5000 unknown", "json: marks")
t.contains(render(p, "top"), "\nmarks              2 dump, 1 labels, 1 unknown\n", "report: marks")
t.contains(render(read(bytes, {}), "top"), "\nmarks              2 dump, 1 labels, 1 unknown\n", "without single samples")
t.contains(render(read(bytes, { from = 500, to = 5000 }), "top"), "\nmarks              1 dump, 1 labels\n", "part of the time")
t.with_file(bytes, function(path)
  local all = reader.read_all({ path, path }, { timeline = true })
  t.contains(render(all, "top"), "\nmarks              4 dump, 2 labels, 2 unknown\n", "marks of two profiles")
  t.equal(#json.decode(render(all, "json")).marks, 8, "json: marks of two profiles")
end)
t.equal(json.decode(render(read(new():finish()), "json")).marks, nil, "json: no marks")

-- -- Dumps -----------------------------------------------------------------

-- A dump without samples after it makes the profile whole.
local function dumped(add, options)
  local x = new():sample(0, 0, 1, nil, nil, 0, { 0, 0 }):mark(1500, G.SPF_MARK_DUMP):flush():context(7, 2000)
  if add then add(x) end
  local q = assert(reader.parse_string(x:flush():bytes(), options))
  return ("%s %s"):format(q.complete and "whole" or "cut", q.goes_on and "goes on" or "ends")
end
local function one_more(x) x:sample(0, 0, 1, nil, nil, 0, { 0, 0 }) end
t.equal(dumped(), "whole goes on", "a dump at the end")
t.equal(dumped(function(x) x:counters { { 1, 2 } } end), "whole goes on", "counters after a dump")
t.equal(dumped(one_more), "cut ends", "a sample after a dump")
t.equal(dumped(one_more, { to = 1200 }), "cut ends", "a sample after a dump that is not asked for")
t.equal(dumped(function(x) one_more(x) x:mark(4000, G.SPF_MARK_DUMP) end, { to = 1200 }), "whole goes on", "two dumps")
t.equal(dumped(function(x) x:add(G.SPF_END, "") end), "whole ends", "the end after a dump")

-- -- Damage ----------------------------------------------------------------

for what, add in pairs {
  ["a mark without a kind"] = function(x) x:add(G.SPF_MARK, "\1") end,
  ["a mark of a huge time"] = function(x) x:mark(2^60, 0) end,
  ["an empty mark"] = function(x) x:add(G.SPF_MARK, "") end,
  ["an end without a reason"] = function(x) x:add(G.SPF_ENDED, "\0") end,
  ["an end of an unknown index"] = function(x) x:ended(G.SPF_EVENTS_MAX, GONE, {}) end,
  ["a thing without an age"] = function(x) x:add(G.SPF_ENDED, "\0\0\5") end,
  ["a huge thing"] = function(x) x:sample(0, 0, 1, nil, nil, 0, { 2^53, 0 }) end,
  ["fields that are cut"] = function(x) x:raw(string.char(G.SPF_SAMPLE) .. uleb(2) .. uleb(2) .. ("\255"):rep(30)) end,
} do
  local x = new()
  add(x)
  t.contains(reader.parse_string(x:finish()):problem_text(), "expected a record", what)
end

t.finish()
