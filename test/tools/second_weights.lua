-- The second weight of samples: what else an event counts, such as the objects of allocated
-- bytes. --weight chooses it by its name.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local json = require("json_decode")
local pprof = require("pprof_decode")
local reader = require("sysprof.read.reader")
local F = B.F

local COUNT, NUMBER = G.SPF_FIELD_COUNT, G.SPF_FIELD_NUMBER
local NAME = "objects"

-- Allocations have two fields before the second weight's successor; CPU time has none.
local function stream(name)
  local b = B.new():context(7, 0):meta("clock", "alloc,cpu"):meta("pid", "7")
  b:event(0, "alloc", G.SPF_UNIT_BYTES, 4096, { { NUMBER, "size" }, { COUNT, name or NAME }, { COUNT, "more" } })
  b:event(1, "cpu", G.SPF_UNIT_US, 1000000)
  b:lfunc(1, 1, "@a.lua", "f"):lfunc(2, 2, "@a.lua", "g"):stack(1, { F.lfunc(1, 1) }):stack(2, { F.lfunc(2, 2) })
  b:sample(1, 0, 2, nil, 4096, 0, { 2^40, 3, 77 }):sample(2, 0, 1, nil, 8192, 0, { 1, 300, 0 })
  b:sample(1, 0, 1, nil, nil, 1):sample(2, 0, 1, nil, 100, 0, { 0, 0, 5 })
  return b:finish()
end

local bytes = stream()
local BY_SECOND = { weight = NAME, limit = 0 }

local function render(format, options, s, base)
  return (assert(t.render(s or bytes, format, options, base)))
end

local FOLDED = "f (a.lua:1) 6\ng (a.lua:2) 300\n"
t.equal(render("folded", BY_SECOND), FOLDED, "folded")
t.equal(render("folded", BY_SECOND, bytes, bytes), "f (a.lua:1) 6 6\ng (a.lua:2) 300 300\n", "compared")
t.equal(render("folded", { weight = "event" }), "f (a.lua:1) 8192\ng (a.lua:2) 8292\n", "the first weight")
local top = render("top", BY_SECOND)
t.contains(top, "\nevent alloc        4 samples, 16.1 KiB estimated, 306 objects; one in 4 KiB asked", "report")
t.contains(top, "\nshown              alloc: 306 objects, 4 samples\n", "top: shown")
t.contains(top, "\n         300    98.0          300    98.0  g (a.lua:2)\n", "top")
t.contains(render("tree", BY_SECOND), "\n         306   100.0            0     0.0  all\n", "tree")
t.contains(render("svg", BY_SECOND), "<title>g (a.lua:2) (300 objects, 98.04%)</title>", "svg")
t.contains(render("flamegraph", BY_SECOND), '{"unit":"count","event":"objects"', "flamegraph")

local d = json.decode(render("speedscope", BY_SECOND))
t.equal(d.profiles[1].unit .. " " .. d.profiles[1].endValue, "none 306", "speedscope")
d = json.decode(render("json", {}))
local list = {}
for i, s in ipairs(d.samples) do
  list[i] = ("%s %.0f %s"):format(s.event, s.weight, s.second_weight or "-")
end
t.equal(table.concat(list, ", "), "alloc 4096 3, alloc 4096 3, alloc 8192 300, cpu 4000 -, alloc 100 0", "json")
t.equal(("%s %s"):format(d.events[1].second, d.events[1].second_weight), "objects 306", "json: event")
t.equal(d.events[2].second, nil, "json: an event without one")

-- Both weights are values of the same samples, under the names of Go's heap profiles.
d = pprof.decode(render("pprof", BY_SECOND))
t.equal(table.concat(d.types, " "), "alloc_objects/count alloc_space/bytes cpu-samples/count cpu/nanoseconds",
	"pprof: types")
t.equal(d.str(d.message[14][1]), "alloc_objects", "pprof: the default type")
t.equal(pprof.folded(d, 1, 1), FOLDED, "pprof: second weights")
t.equal(pprof.folded(d, 2, 1), render("folded", { weight = "event" }), "pprof: weights")
t.equal(pprof.folded(d, 4, 1000), render("folded", { event = "cpu", weight = "cpu" }), "pprof: another event")
t.equal(#d.samples, 3, "pprof: samples")

-- -- Names -----------------------------------------------------------------

t.with_file(bytes, function(path)
  local status, out, err = t.parse("--weight=objects " .. path)
  t.equal(status .. out .. err, 0 .. FOLDED, "--weight=objects")
  status, out, err = t.parse("--weight=more " .. path)
  t.equal(status .. out, "1", "the second COUNT is no weight")
  t.contains(err, "the event 'alloc' has no weight 'more', its weights are: samples, event, bytes, objects\n", "unknown weight")
  err = select(3, t.parse("--event=cpu --weight=objects " .. path))
  t.contains(err, "the event 'cpu' has no weight 'objects', its weights are: samples, event, cpu\n", "of another event")
end)
t.equal(render("folded", { weight = "a?b" }, stream("a\nb")), FOLDED, "an odd name")
t.equal(render("folded", { weight = "samples" }, stream("samples")), "f (a.lua:1) 2\ng (a.lua:2) 2\n",
	"a name that means something else")

-- -- Several profiles, parts of one ----------------------------------------

t.with_file(bytes, function(path)
  local p = assert(reader.read_all({ path, path, path }, { timeline = true }))
  t.equal(events.list(p)[1].second_weight, 3 * 306, "three profiles")
  local sum = 0
  for _, _, _, second in p.timeline:in_order() do sum = sum + second end
  t.equal(sum, 3 * 306, "three profiles: samples")
  p = assert(reader.read(path, { timeline = true, from = 2500, to = 3500 }))
  t.equal(events.list(p)[1].second_weight, 300, "a part of the time")
end)

-- Many slots and samples.
local b = B.new():context(1, 0):event(0, "alloc", G.SPF_UNIT_BYTES, 1, { { COUNT, NAME } })
for i = 1, 3000 do b:stack(i, { F.host(i) }):sample(0, i, 1, nil, nil, 0, { i }) end
local p = assert(reader.parse_string(b:finish(), { timeline = true }))
local differ, i = 0, 0
for _, _, slot, second in p.timeline:in_order() do
  i = i + 1
  if second ~= i or p.slots[slot].second ~= i then differ = differ + 1 end
end
t.ok(i == 3000 and differ == 0, "many")

local one = B.new():context(7, 0):meta("clock", "alloc"):event(0, "alloc", G.SPF_UNIT_BYTES, 4096, { { COUNT, NAME } })
t.contains(render("top", BY_SECOND, one:sample(0, 0, 1, nil, 4096, 0, { 1 }):finish()), ", 1 object;", "one")

-- -- Damage ----------------------------------------------------------------

b = B.new():context(1, 0):event(0, "alloc", G.SPF_UNIT_BYTES, 1, { { COUNT, NAME } }):sample(0, 0, 1, nil, nil, 0, { 2^53 })
t.contains(reader.parse_string(b:finish()):problem_text(), "expected a record", "a huge second weight")
for n, problem in pairs { [2^10] = "", [2^10 + 1] = "the weights of a stack add up to 2^63 or more" } do
  b = B.new():context(1, 0):event(0, "alloc", G.SPF_UNIT_BYTES, 1, { { COUNT, NAME } })
  for _ = 1, n do b:sample(0, 0, 1, nil, nil, 0, { 2^53 - 1 }) end
  p = reader.parse_string(b:finish())
  t.contains(p:problem_text() or "", problem, n .. " second weights of 2^53 - 1")
  t.equal(p.complete, problem == "", n .. " second weights of 2^53 - 1: complete")
end

t.finish()
