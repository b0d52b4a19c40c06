-- Samples and stacks at the limits of their encodings: the reader's results for their
-- differences, lengths and references.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local F, uleb, signed = B.F, B.uleb, B.signed

local UNIT = G.SPF_UNIT_US

-- Returns the samples of a stream of one chunk, "time weight event" each.
local function samples_of(b, what)
  local p = reader.parse_string(b:finish(), { timeline = true })
  t.equal(p:problem_text(), nil, what)
  local list = {}
  for time, weight, slot in p.timeline:in_order() do
    list[#list + 1] = ("%.0f %.0f %d"):format(time, weight, p.slots[slot].event.index)
  end
  return list
end

-- A sample by its numbers in the stream; weight nil: no weight.
local function sample(event, time, weight)
  local tag = G.SPF_SAMPLE + G.SPF_VMST_LFUNC + event * 16 +
	      (weight and 0 or G.SPF_SAMPLE_WEIGHT_USUAL)
  return string.char(tag) .. (event == G.SPF_EVENT_IN_TAG and "\0" or "") .. uleb(signed(time)) ..
	 (weight and uleb(signed(weight)) or "") .. "\0\0"
end

-- -- Times and weights -----------------------------------------------------

-- Differences of one, two and more bytes, on both sides of 0.
local DIFFS = { 0, 1, 63, 64, 65, 8191, 8192, 2^20, 2^31 - 1, 2^31, 2^32, 2^40, 2^45 }
for _, step in ipairs { 0, 1, 1000, 2^33 } do
  for _, n in ipairs(DIFFS) do
    for _, diff in ipairs { n, -n, -n - 1 } do
      local start = 2^46
      for _, more in ipairs { 0, 1, -1, 63, -64, 64, -65, 8192, -8193, 2^44 } do
	-- The second one is a whole interval after the first, and so is its weight.
	local b = B.new():context(1, start, step)
	b:raw(sample(0, 2^45 - step)):raw(sample(0, diff, more < 0 and diff < 0 and 2^47 or
						  2^46 + more))
	local first, second = start + 2^45, start + 2^45 + step + diff
	local weight = step + diff + (more < 0 and diff < 0 and 2^47 or 2^46 + more)
	local list = samples_of(b, "a difference")
	local expected = { ("%.0f %.0f 0"):format(first, 2^45),
			   ("%.0f %.0f 0"):format(second, weight) }
	if second < first then expected[1], expected[2] = expected[2], expected[1] end
	t.equal(table.concat(list, ", "), table.concat(expected, ", "),
		("step %.0f, difference %.0f, weight %.0f"):format(step, diff, more))
      end
    end
  end
end

local b = B.new():context(1, 500, 1000)
b:raw(sample(0, 0)):raw(sample(0, -1000)):raw(sample(0, -1, -999)):raw(sample(0, 7, -7))
t.equal(table.concat(samples_of(b, "around the step"), ", "),
	"1500 1000 0, 1500 0 0, 2499 0 0, 3506 1000 0", "around the step")

-- Each event has its own last sample; a context begins anew, for all.
b = B.new():context(1, 100, 10)
for index = 0, 3 do b:event(index, "e" .. index, UNIT, 1000) end
b:raw(sample(0, 0)):raw(sample(1, 0)):raw(sample(1, 0)):raw(sample(3, 0, 5)):raw(sample(0, 0))
b:context(1, 1000, 0):raw(sample(1, 7)):raw(sample(0, 3, -2))
t.equal(table.concat(samples_of(b, "events"), ", "),
	"110 10 0, 120 20 1, 130 10 1, 140 45 3, 150 40 0, 1007 7 1, 1010 8 0", "events")

-- -- Lengths of stacks -----------------------------------------------------

-- Stacks of all lengths around those where one more byte is needed.
local BYTES = { 2, 3, 61, 62, 63, 64, 65, 190, 191, 192, 16446, 16447, 16500 }
for _, bytes in ipairs(BYTES) do
  b = B.new():context()
  local record = B.stack(0, 0, F.vm:rep(bytes - 2))
  local head = bytes < 63 and 1 or bytes < 63 + 128 and 2 or bytes < 63 + 16384 and 3 or 4
  t.equal(#record, bytes + head, "bytes of a stack of " .. bytes)
  b:raw(record):raw(B.stack(1, 0, F.host(7)))
  b:raw("\193" .. uleb(0) .. uleb(0) .. uleb(3)):raw("\193" .. uleb(0) .. uleb(0) .. uleb(1))
  local p = reader.parse_string(b:finish())
  local deep = bytes - 2 <= 16384
  t.equal(p:problem_text() == nil, deep, "a stack of " .. bytes .. " bytes")
  if deep then
    t.equal(p.stacks:depth(p.slots[1].host), bytes - 2, "frames of " .. bytes .. " bytes")
    t.equal(p.stacks:depth(p.slots[2].host), 1, "the stack behind it")
  end
end

-- -- References ------------------------------------------------------------

-- Stack n has the frame n; each is referred to by its number, and from the end. Numbers of
-- one, two and three bytes.
local N = 16601	-- Odd, so that no two samples are equal.
b = B.new():context()
for n = 1, N do
  b:raw(B.stack(0, 0, F.host(n)))
  b:raw("\193" .. uleb(0) .. uleb(n > 1 and 2 or 0) .. uleb(1))
end
for n = 1, N do b:raw("\193" .. uleb(0) .. uleb(n + 2) .. uleb(N - n + 3)) end
b:raw(B.stack(2, 1, F.host(5000))):raw(B.stack(1, 2, F.host(6000)))
b:raw(B.stack(3, 1, F.host(7000))):raw("\193" .. uleb(0) .. uleb(2) .. uleb(1))
local BASES = { 1, 125, 126, 16381, 16382, 16509, 16510, N }
for _, n in ipairs(BASES) do
  b:raw(B.stack(n + 2, 1, F.host(8000))):raw("\193" .. uleb(0) .. uleb(1) .. uleb(0))
end
local p = reader.parse_string(b:finish())
t.equal(p:problem_text(), nil, "references")
local function text_of(node)
  local list, text = {}, {}
  for i = 1, p.stacks:list(node, list) do text[i] = p.stacks.payload[list[i]] end
  return table.concat(text, " ")
end
local function slot_text(i) return text_of(p.slots[i].lua) .. "|" .. text_of(p.slots[i].host) end
t.equal(slot_text(1), "|1", "the first stack")
for n = 2, N do t.equal(slot_text(n), n - 1 .. "|" .. n, "the last two of " .. n) end
for n = 1, N do t.equal(slot_text(N + n), n .. "|" .. N - n + 1, "by the number " .. n) end
t.equal(slot_text(2 * N + 1), N - 1 .. " 5000 6000|1 7000", "bases")
for i, n in ipairs(BASES) do t.equal(slot_text(2 * N + 1 + i), n .. " 8000|", "base " .. n) end
t.equal(p.slots:count(), 2 * N + 1 + #BASES, "distinct samples")

-- Outermost frames that a stack has of another one.
for _, keep in ipairs { 1, 127, 128, 129, 16383, 16384 } do
  b = B.new():context():raw(B.stack(0, 0, F.vm:rep(16384))):raw(B.stack(1, keep, ""))
  p = reader.parse_string(b:raw("\193" .. uleb(0) .. uleb(0) .. uleb(1)):finish())
  t.equal(p:problem_text(), nil, "frames of another stack: " .. keep)
  t.equal(p.stacks:depth(p.slots[1].host), keep, "frames of another stack")
end

t.finish()
