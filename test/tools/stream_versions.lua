-- Streams of version 3 are read as before. In version 4 a sample may have labels, fields and
-- a large index, and a session may begin with any chunk that says so.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local F, uleb, str = B.F, B.uleb, B.str

-- Returns the samples, "weight event" each, and the profile.
local function read(bytes)
  local p = assert(reader.parse_string(bytes, { timeline = true }))
  local list = {}
  for _, weight, slot in p.timeline:in_order() do
    list[#list + 1] = ("%.0f %d"):format(weight, p.slots[slot].event.index)
  end
  return table.concat(list, ", "), p
end

-- -- Versions --------------------------------------------------------------

-- The worked example of version 3's document.
local OLD = "6c6a7303000000806c6a70030000006c6a630300000000a2000000e7f64c8702050700" ..
  "00e807010a05636c6f636b036370750a0f00096370752d636c6f636b00c0843d040d0100090840" ..
  "6669622e6c7561000410020104084066" .. "69622e6c75610366696247000003100620034800" ..
  "00858404ab4206c1000201c1060201440203b10282009f0601024703" .. "03b901010a04c400" ..
  "0104050c130a6d6174682e666c6f6f720609802005737461727420060880" .. "22046d61696e29" ..
  "080601020201040109" .. "00"
local old = OLD:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end)
local head = "start;main;main chunk (fib.lua);fib (fib.lua:1)"
local out, p = t.render(old)
t.equal(out, head .. " 2\n" .. head .. ";[gc: sweep] 1\n" .. head .. ";math.floor 1\n",
	"an example of version 3")
t.equal(p:problem_text(), nil, "the example is complete")
t.equal(p.version, 3, "its version")

-- The same samples in both versions. Occurrences are less the time in version 3, less the
-- period in version 4.
local function with_counts(version)
  local b = B.new(nil, version):context(1, 0):lfunc(1, 1, "@x", "f"):stack(1, { F.lfunc(1) })
  b:event(0, "cpu-clock", G.SPF_UNIT_US, 1000000):event(1, "page-faults", G.SPF_UNIT_COUNT, 100)
  b:event(3, "wall", G.SPF_UNIT_US, 1000000)
  b:sample(1, 0, 1, nil, nil, 0):sample(1, 0, 1, nil, 100, 1):sample(1, 0, 1, nil, 130, 1)
  b:sample(1, 0, 1, nil, 70, 1):sample(1, 0, 1, nil, 400, 3):sample(1, 0, 1, nil, nil, 3)
  return b:finish()
end
for version = G.SPF_VERSION_OLDEST, G.SPF_VERSION do
  local list, profile = read(with_counts(version))
  t.equal(list, "1000 0, 100 1, 130 1, 70 1, 400 3, 1000 3", "counts in version " .. version)
  t.equal(profile:problem_text(), nil, "version " .. version .. " is complete")
  t.equal(profile.version, version, "version")
end

-- A usual count takes no byte.
local b = B.new():context(1, 0):event(1, "page-faults", G.SPF_UNIT_COUNT, 100)
t.equal((read(b:sample(0, 0, 2, nil, nil, 1):finish())), "100 1, 100 1", "the usual weight")

for _, index in ipairs { G.SPF_EVENTS_MAX, 2^40 } do
  local bad = B.new():context():raw(string.char(G.SPF_SAMPLE + G.SPF_SAMPLE_EVENT +
    G.SPF_SAMPLE_WEIGHT_USUAL) .. uleb(index - G.SPF_EVENT_IN_TAG) .. "\1\0\0")
  t.contains(select(2, read(bad:finish())):problem_text(), "expected a record", "index " .. index)
end

-- -- Labels, fields, marks -------------------------------------------------

b = B.new():context(1, 0):lfunc(1, 1, "@x", "f"):stack(1, { F.lfunc(1) })
b:add(G.SPF_LABELS, uleb(1) .. str("route") .. str("/a") .. str("tenant") .. str("7"))
b:add(G.SPF_LABELS, uleb(5000))
for _, id in ipairs { 30, 31, 32 } do b:add(G.SPF_TEXT, uleb(id) .. str("reason " .. id)) end
b:event(0, "alloc", G.SPF_UNIT_BYTES, 524288,
	{ { G.SPF_FIELD_COUNT, "objects" }, { G.SPF_FIELD_THING, "object" } })
b:event(1, "trace-abort", G.SPF_UNIT_COUNT, 1, { { G.SPF_FIELD_TEXT, "reason" } })
b:labelled(1):sample(1, 0, 2, nil, 524300, 0, { 3, 300 })
for _, id in ipairs { 30, 31, 32 } do b:labels(id, { { "id", tostring(id) } }) end
for _, id in ipairs { 0, 30, 31, 32, 5000 } do
  b:labelled(id):sample(1, 0, 1, nil, nil, 1, { id % 5000 })
end
b:add(G.SPF_ENDED, uleb(0) .. uleb(G.SPF_ENDED_GONE) .. uleb(300) .. uleb(2))
b:add(G.SPF_MARK, uleb(1500) .. uleb(G.SPF_MARK_LABELS) .. uleb(1))
b:sample(1, 0, 1, nil, nil, 0, { 0, 2^40 })
local list, profile = read(b:finish())
t.equal(list, "524300 0, 524300 0, 1 1, 1 1, 1 1, 1 1, 1 1, 524288 0, 524288 0", "labels and fields")
t.equal(profile:problem_text(), nil, "labels and fields: complete")
local texts = {}
for i = 1, profile.slots:count() do
  for _, pair in ipairs(profile.slots[i].labels or {}) do
    if pair[1] == "reason" then texts[#texts + 1] = pair[2] end
  end
end
t.equal(table.concat(texts, ", "), "reason 30, reason 31, reason 32", "texts are labels")

b = B.new():context(1, 0):lfunc(1, 1, "@x", "f"):stack(1, { F.lfunc(1) })
b:event(0, "trace-abort", G.SPF_UNIT_COUNT, 1, { { G.SPF_FIELD_TEXT, "reason" } })
b:sample(1, 0, 2, nil, nil, 0, { 7 }):sample(1, 0, 2, nil, nil, 0, { 0 })
t.contains(select(2, read(b:finish())):problem_text(), "2 texts of samples are not defined",
	   "a text that is not defined")

local many = {}
for i = 1, G.SPF_FIELDS_MAX do many[i] = { G.SPF_FIELD_NUMBER, "n" } end
t.equal(select(2, read(B.new():context():event(0, "e", 1, 1, many):finish())):problem_text(), nil,
	"the most fields")
many[#many + 1] = many[1]
for what, record in pairs {
  ["too many fields"] = function(x) x:event(0, "e", 1, 1, many) end,
  ["a field without a name"] = function(x)
    x:add(G.SPF_EVENT, uleb(0) .. str("e") .. uleb(1) .. uleb(1) .. "\0")
  end,
  ["a key without a value"] = function(x) x:add(G.SPF_LABELS, uleb(1) .. str("route")) end,
  ["a text that is cut"] = function(x) x:add(G.SPF_TEXT, uleb(1) .. "\9abc") end,
  ["labels that are cut"] = function(x) x:raw("\63\200") end,
  ["a mark that is cut"] = function(x) x:add(G.SPF_MARK, "\200") end,
  ["a sample without its fields"] = function(x)
    x:event(0, "e", 1, 1, { { G.SPF_FIELD_NUMBER, "n" } }):sample(0, 0)
  end,
} do
  local x = B.new():context():sample(0, 0)
  record(x)
  t.contains(select(2, read(x:finish())):problem_text(), "expected a record", what)
end

-- -- Chunks that a session may begin with ----------------------------------

local function chunk(seq, since)
  local records = B.record(G.SPF_CONTEXT, uleb(1) .. uleb(0) .. "\0\0\0" .. uleb(since)) ..
    B.record(G.SPF_LFUNC, uleb(1) .. "\1\1" .. str("@x") .. str("f")) ..
    B.stack(0, 0, F.lfunc(1, 1)) .. "\193\2\1\0"
  return B.chunk(seq, records)
end
local last = B.chunk(9, B.record(G.SPF_CONTEXT, uleb(1) .. uleb(0)) .. B.record(G.SPF_END, ""))
out, p = t.render(B.PROLOGUE .. chunk(7, 1) .. chunk(8, 0) .. last)
t.equal(out, "f (x:1) 2\n", "a later chunk is the first one")
t.equal(p:problem_text(), nil, "nothing is missing")
local _
_, p = t.render(B.PROLOGUE .. chunk(7, 0) .. chunk(8, 0) .. last)
t.contains(p:problem_text(), "expected chunk number 0, found 7", "the chunks before are missing")
_, p = t.render(B.PROLOGUE .. chunk(7, 1) .. chunk(6, 1) .. last)
t.contains(p:problem_text(), "expected chunk number 8, found 6", "only the first chunk may")

t.finish()
