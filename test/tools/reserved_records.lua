-- Records and fields that a later writer may add change nothing of what the reader shows.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local F, uleb, str = B.F, B.uleb, B.str

-- A stream with other records between its own ones, and further fields of its event.
local function stream(other, fields, values)
  local b = B.new()
  local function add() if other then other(b) end end
  b:context(1, 0)
  add()
  b:event(0, "cpu-clock", G.SPF_UNIT_US, 1000000, fields)
  b:lfunc(1, 1, "@x", "f", 9):lfunc(2, 2, "@x", "g", 4)
  add()
  b:stack(1, { F.lfunc(1, 3), F.lfunc(2, 2) })
  b:sample(1, 0, 2, nil, nil, 0, values)
  add()
  b:sample(1, 0, 1, nil, 500, 0, values):flush():context(1, 3000)
  add()
  b:stack(1, { F.lfunc(2, 3) }):sample(1, 0, 1, nil, nil, 0, values)
  add()
  return b:finish()
end

local FORMATS = { "folded", "top", "json", "flamegraph" }
local expected = {}
for _, format in ipairs(FORMATS) do expected[format] = t.render(stream(), format) end

local function same(what, bytes)
  t.equal(assert(reader.parse_string(bytes)):problem_text(), nil, what .. ": whole")
  for _, format in ipairs(FORMATS) do
    -- The self-report and the page tell the size of the file, which is another one.
    local function without_size(s) return (s:gsub("%d+ bytes", "bytes")) end
    t.equal(without_size(t.render(bytes, format)), without_size(expected[format]), what .. ": " .. format)
  end
end

local HASH = "\1\2\3\4\5\6\7\8"
local RESERVED = {
  SPF_BODY = uleb(1) .. HASH .. uleb(2) .. HASH .. uleb(7) .. HASH,
  SPF_SPAN = uleb(1) .. uleb(0) .. uleb(2000) .. uleb(1) .. uleb(0) .. str("trace_id") .. str("4bf9"),
  SPF_SPAN_END = uleb(1) .. uleb(G.SPF_SPAN_STOPPED) .. uleb(2000) .. uleb(100),
  SPF_IN_SPAN = uleb(1),
  SPF_TRACE = uleb(3) .. uleb(2) .. uleb(1) .. uleb(1) .. uleb(3) .. uleb(2) .. uleb(40) .. uleb(900),
  SPF_LOST = uleb(0) .. uleb(G.SPF_COUNTER_LOST_QUEUE) .. uleb(1) .. uleb(10) .. uleb(20) .. uleb(3) .. uleb(3000),
  SPF_SOURCE = str("@x") .. uleb(5) .. uleb(0) .. str("x = 1"),
}
local names = {}
for name, payload in pairs(RESERVED) do
  names[#names + 1] = name
  same(name, stream(function(b) b:add(G[name], payload) end))
end
for tag = G.SPF_SOURCE + 1, G.SPF_LABELLED - 1 do
  same("unknown record " .. tag, stream(function(b) b:add(tag, "\255\0any") end))
end
same("all reserved records", stream(function(b)
  for _, name in ipairs(names) do b:add(G[name], RESERVED[name]) end
end))

for kind = G.SPF_FIELD_FUNC, G.SPF_FIELD__MAX + 3 do
  same("field " .. kind, stream(nil, { { kind, "later" } }, { 1 }))
end
same("a field of a large kind", stream(nil, { { 2^40, "later" } }, { 2^50 }))

-- -- Hashes of bodies ------------------------------------------------------------

local function bodies(payload)
  local b = B.new():context(1, 0):lfunc(1, 1, "@x", "f"):lfunc(2, 2, "@x", "g"):add(G.SPF_BODY, payload)
  local p = assert(reader.parse_string(b:finish()))
  return p.lfuncs[1].body, p.lfuncs[2].body, p:problem_text()
end
local f, g, problem = bodies(uleb(2) .. HASH)
t.equal(f, nil, "no hash")
t.equal(g, HASH, "a hash")
t.equal(problem, nil, "whole")
t.contains(select(3, bodies(uleb(1) .. HASH:sub(2))), "expected a record", "a hash that is cut")

t.finish()
