-- Streams changed at random, most with right checksums again. The reader never fails with
-- an error and is never silent: it always prints one sentence. etc/bench/reader_fuzz
-- tries many more, and measures time and memory. Here the timeout ends a hang.
-- TIMEOUT: 900
-- BASE: none, it reads no profile of this LuaJIT
-- LONG: 11

local t = require("tools_test")
local B = require("stream_builder")
local mutations = require("mutations")
local F = B.F

local ROUNDS, SEED = 1000, 20

for _, stream in ipairs(mutations.originals) do
  local wrong, silent = mutations.try(stream, 1)
  t.equal(wrong, nil, "unchanged")
  t.equal(silent, true, "unchanged: nothing amiss")
end
for _, i in ipairs { 1, 3 } do
  local whole = mutations.originals[i]
  t.equal(mutations.join(mutations.split(whole)), whole, "chunks put together again")
end

for round = 1, ROUNDS do
  local s, must_notice = mutations.stream(SEED, round)
  local wrong, silent = mutations.try(s, round)
  t.ok(not wrong, ("round %d: %s"):format(round, wrong or ""))
  t.ok(not (must_notice and silent), "round " .. round .. " was silent")
end

-- Streams made to be expensive: magics everywhere, deep stacks.
for i, s in ipairs { B.PROLOGUE .. ("ljc\4"):rep(200000),
		     B.PROLOGUE .. ("ljc\4\0\0\0\0\0\0\8\0zzzz"):rep(60000) } do
  t.equal(mutations.try(s, 0), nil, "many magics " .. i)
end
local b = B.new():context()
for i = 1, 2000 do b:stack(i, { F.host(i) }, i - 1) end
b:sample(0, 2000)
local out = t.render(b:finish())
t.equal(#(out or ""):gsub("[^;]", ""), 1999, "frames of a deep stack")
b = B.new():context()
for i = 1, 10000 do b:stack(i, { F.host(i) }, i - 1) end
for _ = 1, 20000 do b:stack(10001, { F.host(1) }, 0, 10000):stack(10001, {}, 1, 10000) end
local packed = table.concat(b:sample(0, 10001).records)
out = t.render(B.PROLOGUE .. B.chunk(0, packed))
t.equal(out, "0x1 1\n", "few frames of deep stacks")

t.finish()
