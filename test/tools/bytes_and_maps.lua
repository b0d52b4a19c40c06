-- Numbers, checksums, input windows, the maps and parts of stacks, each against a plain
-- implementation.
-- BASE: none, it reads no profile of this LuaJIT

local ffi = require("ffi")
local bit = require("bit")
local t = require("tools_test")
local B = require("stream_builder")
local bytes = require("sysprof.base.bytes")
local chunkstacks = require("sysprof.read.chunkstacks")
local input = require("sysprof.read.input")
local limits = require("sysprof.base.limits")
local pairmap = require("sysprof.base.pairmap")
local seen = require("sysprof.read.seen")
local stacks = require("sysprof.model.stacks")

math.randomseed(1)

local function buffer(s)
  local buf = ffi.new("uint8_t[?]", #s + 64)
  ffi.copy(buf, s, #s)
  return buf
end

-- ULEB128.
for _, n in ipairs { 0, 1, 127, 128, 16383, 16384, 2^31, 2^32 + 5, 2^53 - 1 } do
  local s = B.uleb(n)
  local v, pos = bytes.uleb(buffer("x" .. s), 1)
  t.equal(v, n, "number " .. n)
  t.equal(pos, 1 + #s, "bytes of number " .. n)
  t.equal(bytes.uleb_text(n), s, "text of number " .. n)
end
t.equal(bytes.uleb_text(2^64), bytes.uleb_text(2^63 - 1024), "text of a number that is too large")
t.equal(bytes.uleb_text(0xffffffffffffffffULL), ("\255"):rep(9) .. "\1", "text of the largest uint64_t")
t.equal(bytes.u16_text(0xa1b2), "\xb2\xa1", "text of 16 bits")
t.equal(bytes.u32_text(0xa1b2c3d4), "\xd4\xc3\xb2\xa1", "text of 32 bits")
t.equal(bytes.uleb(buffer("\130\128\0"), 0), 2, "number with zeros in front")
t.equal(bytes.uleb(buffer(("\255"):rep(20)), 0), math.huge, "number too long")

-- Strings.
local function str(s, stop)
  return (bytes.str(buffer(s), 0, stop or #s))
end
t.equal(str("\3abc"), "abc", "string")
t.equal(str("\0"), "", "empty string")
t.equal(str("\4abc"), nil, "string behind the end")
t.equal(str("\255\255\255\255\255\255\255\255\127"), nil, "huge string")
t.equal(str("\3abc", 0), nil, "string at the end")

-- CRC-32, with the check value of the definition.
t.equal(B.crc32("123456789"), 0xcbf43926, "the builder's CRC-32")
for len = 0, 70 do
  local s = {}
  for i = 1, len do s[i] = string.char(math.random(0, 255)) end
  s = table.concat(s)
  t.equal(bytes.crc32(0, buffer(s), 0, len) % 2^32, B.crc32(s), "CRC-32 of " .. len)
  local half = math.floor(len / 2)
  local crc = bytes.crc32(0, buffer(s), 0, half)
  t.equal(bytes.crc32(crc, buffer(s), half, len) % 2^32, B.crc32(s),
	  "CRC-32 in two parts")
end

-- Input: windows of any size over reads of any size.
local all = {}
for i = 1, 300000 do all[i] = string.char(i * 7 % 251) end
all = table.concat(all)
local at = 0
local inp = input.new(function()
  local part = all:sub(at + 1, at + math.random(1, 5000))
  at = at + #part
  return part ~= "" and part or nil
end)
local place = 0
while inp:need(1) > 0 do
  local want = math.random(1, 20000)
  local have = math.min(inp:need(want), want)
  if ffi.string(inp.buf + inp.pos, have) ~= all:sub(place + 1, place + have) or
     inp:offset() ~= place then
    t.ok(false, "window at " .. place)
    break
  end
  local step = math.min(have, math.random(1, 20000))
  inp:skip(step)
  place = place + step
end
t.equal(place, #all, "bytes in all windows")

-- Pairs: the same numbers as a Lua table gives.
local map, known, count = pairmap.new(), {}, 0
for _ = 1, 50000 do
  local a, b = math.random(0, 300) * 2^math.random(0, 40), math.random(0, 200)
  local id, new = map:put(a, b)
  local key = a .. " " .. b
  if not known[key] then
    count = count + 1
    known[key] = count
    if not new then t.ok(false, "pair is new: " .. key) end
  elseif new then
    t.ok(false, "pair is known: " .. key)
  end
  if known[key] ~= id then t.equal(id, known[key], "pair " .. key) end
end
t.equal(map.count, count, "number of pairs")
t.ok(bit.band(map.places, map.places - 1) == 0, "number of places is a power of two")

-- Records: what was put into each, after all arrays grew.
local records = pairmap.new(pairmap.kind("int32_t a, b; double sum;"))
for i = 1, 40000 do
  local id, new = records:put(i % 10000, i % 7)
  local r = records.list[id]
  if new and r.sum ~= 0 then t.equal(r.sum, 0, "a new record " .. id) end
  r.sum = r.sum + i % 10000
end
local wrong = 0
for id = 1, records.count do
  local r = records.list[id]
  if r.a % 10000 ~= r.a or r.b >= 7 or r.sum ~= r.a * math.floor(r.sum / math.max(r.a, 1)) then
    wrong = wrong + 1
  end
end
t.equal(wrong, 0, "records with fields of another")

-- Stacks of chunks: of one chunk only, by their numbers and from the end.
local refs, NONE = chunkstacks.new(), chunkstacks.NONE
for chunk = 0, 20 do
  refs:clear()
  local list = {}
  for n = 1, chunk * 50 do
    list[n] = math.random(2^24)
    refs:add(list[n])
  end
  t.equal(refs:get(0), 0, "the empty stack")
  t.equal(refs:get(1), list[#list] or NONE, "the last stack")
  t.equal(refs:get(2), list[#list - 1] or NONE, "the one before it")
  for n = 1, #list do
    if refs:get(n + 2) ~= list[n] then t.equal(refs:get(n + 2), list[n], "stack " .. n) end
  end
  for _, far in ipairs { #list + 3, 2^20, 2^31, 2^52, math.huge } do
    t.equal(refs:get(far), NONE, "no stack " .. far)
    local a, b = refs:get2(1, far)
    t.equal(a, list[#list] or NONE, "first of two stacks")
    t.equal(b, NONE, "second of two stacks")
  end
end

-- Strings that were seen: each is found under its key, no other one is.
local function any_string(max)
  local s = {}
  for i = 1, math.random(max) do s[i] = string.char(math.random(0, 2)) end
  return table.concat(s)
end
local strings, number_of, missed = seen.strings(), {}, 0
wrong = 0
for i = 1, 40000 do
  local key, s = math.random(0, 3), any_string(math.random(30))
  local buf = buffer("xyz" .. s)
  local number, h = strings:find(key, buf, 3, #s)
  local expected = number_of[key .. s]
  if number and number ~= expected then wrong = wrong + 1 end
  if not number then
    if expected then missed = missed + 1 end
    strings:put(key, buf, 3, #s, h, i)
    number_of[key .. s] = i
  end
end
t.equal(wrong, 0, "strings with the number of another")
-- At most half of the places are taken: 16 in a row hardly ever.
t.ok(missed < 40, "strings are found: " .. missed .. " were not")

-- Prefixes: strings that end with their only "z", in one long text.
local prefixes, numbers, text, at = seen.prefixes(), {}, {}, {}
for i = 1, 5000 do
  text[i] = any_string(math.random(60)) .. "z"
  at[i + 1] = (at[i] or 0) + #text[i]
end
at[1] = 0
local long = buffer(table.concat(text) .. ("\0"):rep(100))
for i, s in ipairs(text) do
  local number, last = prefixes:find(long, at[i])
  t.equal(number, numbers[s], "number of prefix " .. i)
  t.equal(last, number and at[i + 1], "end of prefix " .. i)
  if not number then
    numbers[s] = i
    prefixes:put(long, at[i], #s, i)
  end
end
t.equal(prefixes.longest, 61, "longest prefix")
prefixes:clear()
t.equal(prefixes:find(long, 0), nil, "prefix that was forgotten")

-- Outermost frames of stacks of any depth and shape.
local tree = stacks.new(require("sysprof.model.room").account())
local frame = { tree:frame(5, 1, 0), tree:frame(5, 2, 0) }
for _ = 1, 200 do
  local path, depth = { [0] = 0 }, math.random(0, 400)
  for i = 1, depth do path[i] = tree:push(path[i - 1], frame[math.random(2)]) end
  for n = 0, depth do
    if tree:outermost(path[depth], n) ~= path[n] then
      t.ok(false, ("the %d outermost of %d frames"):format(n, depth))
    end
  end
end

-- A file that ends one byte behind a block.
t.with_file(("x"):rep(256 * 1024 + 1), function(path)
  local window = input.from_file(assert(io.open(path, "rb")))
  t.equal(window:need(2^20), 256 * 1024 + 1, "the last byte of a file")
  t.equal(window.err, nil, "the end of a file")
end)

-- -- Numbers that others choose --------------------------------------------

local numbermap = require("sysprof.base.numbermap")
local ranges = require("sysprof.base.ranges")

-- Returns how many hundreds of instructions of the VM a function takes.
local function instructions(f)
  local n = 0
  jit.off()
  debug.sethook(function() n = n + 1 end, "", 100)
  f()
  debug.sethook()
  jit.on()
  return n
end

-- Pairs that differ in some bits only are found as fast as others.
local N = 4000
local function put_all(a_of, b_of)
  return instructions(function()
    local map = pairmap.new()
    for i = 1, N do map:put(a_of(i), b_of(i)) end
  end)
end
local function zero() return 0 end
local usual = put_all(function(i) return i end, zero)
for _, bits in ipairs { 8, 16, 24, 32, 38 } do
  local function shifted(i) return i * 2 ^ bits end
  t.ok(put_all(shifted, zero) < 2 * usual, ("numbers that differ above bit %d"):format(bits))
end
t.ok(put_all(zero, function(i) return i * 2^18 end) < 2 * usual, "second numbers that differ above bit 18")

-- A numbermap is a table of numbers up to 2^64.
local map, model = numbermap.new(), {}
math.randomseed(52)
for step = 1, 20000 do
  local key = math.random(0, 3) == 0 and math.random(0, 50) or math.random(0, 300) * 2 ^ math.random(0, 55)
  local value = math.random(0, 2) > 0 and step or nil
  map[key], model[key] = value, value
end
map[0], model[0] = false, false
local count, total = 0, 0
for key, value in map:each() do
  count = count + 1
  t.ok(model[key] == value, ("value of %.0f"):format(key))
end
for key, value in pairs(model) do
  total = total + 1
  if map[key] ~= value then t.ok(false, ("%.0f is missing"):format(key)) end
end
t.equal(count, total, "numbers in a numbermap")

-- What comes and goes takes no room.
for _, first in ipairs { 0, 2^40 } do
  map = numbermap.new()
  for i = 1, 100000 do map[first + i], map[first + i - 10] = true, nil end
  t.ok(map.count < 5000, map.count .. " removed numbers stay")
end

-- LuaJIT's tables spread the small numbers evenly: no place has twice as many as the others.
local halves = ffi.new("union { double number; int32_t half[2]; }")
local rol, bxor, tobit, band = bit.rol, bit.bxor, bit.tobit, bit.band
for _, places in ipairs { 2^12, 2^16 } do
  local at, most = ffi.new("int32_t[?]", places), 0
  for number = 0, 2^24 - 1 do
    halves.number = number
    local low, high = halves.half[0], tobit(halves.half[1] * 2)
    low, high = bxor(low, high), rol(high, 14)
    low, high = tobit(low - high), rol(high, 5)
    high = bxor(high, low)
    local place = band(high - rol(low, 13), places - 1)
    at[place] = at[place] + 1
    most = math.max(most, at[place])
  end
  t.ok(most < 2 * 2^24 / places, ("%d of the small numbers are at one of %d places"):format(most, places))
end

-- Ranges: the latest one counts where several overlap.
local list, painted = ranges.new(), {}
for value = 1, 2000 do
  local first = math.random(0, 400)
  local last = first + math.random(1, 60)
  list:put(first, last, value)
  for i = first, last - 1 do painted[i] = value end
  local at, has = math.random(0, 500), false
  local found = list:find(at)
  if (found and found.value) ~= painted[at] then t.ok(false, "range at " .. at) end
  for i = at, at + 9 do has = has or painted[i] ~= nil end
  if (list:overlapped(at, at + 10) ~= nil) ~= has then t.ok(false, "overlapped from " .. at) end
end

-- All of a range goes if a part of it does.
list = ranges.new()
for i = 0, 9 do list:put(10 * i, 10 * i + 5, i) end
t.equal(list:remove(15, 20), false, "nothing to remove")
t.equal(list:remove(12, 33), true, "something to remove")
for i = 0, 9 do t.equal(list:find(10 * i + 4) == nil, i >= 1 and i <= 3, "range " .. i) end

-- LuaJIT compares long strings of one length with each other. Names above a limit are cut, and still differ.
do
  bytes.forget_strings()
  local function name(i, len) return ("\195\164"):rep(60) .. ("%08d"):format(i) .. ("x"):rep(len - 128) end
  local function read(s) return (bytes.str(buffer(B.str(s)), 0, #s + 2)) end
  local whole, cut, known = 0, 0, {}
  for i = 1, 5000 do
    local s = read(name(i, 1000))
    if s == name(i, 1000) then whole = whole + 1 else cut = cut + 1 end
    if known[s] then t.ok(false, "two names are alike: " .. s) end
    known[s] = true
  end
  t.equal(math.floor(whole * (whole - 1) / 2 / limits.ALIKE + 0.001), 1, "as many as may be compared are whole")
  t.ok(cut > 0, "the others are cut")
  t.ok(read(name(5000, 1000)):find("^" .. ("\195\164"):rep(50) .. "%.%.%.%x%x%x%x%x%x%x%x$"), "a name that is cut")
  t.equal(read(name(1, 1000)), name(1, 1000), "a name that came before")
  t.equal(read(name(5000, 1001)), name(5000, 1001), "a name of another length")
  t.equal(read(("x"):rep(127)), ("x"):rep(127), "a short name")
  bytes.forget_strings()
  t.equal(read(name(5000, 1000)), name(5000, 1000), "a new profile")
end

t.finish()
