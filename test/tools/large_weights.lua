-- Weights and sums up to 2^63: long waits of many coroutines reach them. All formats show them, and above 2^53 they are
-- rounded as doubles are. What is larger ends its chunk with a sentence.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local pprof = require("pprof_decode")
local F = B.F


-- Returns a stream with a stack for each weight, and the sums in its order.
local function stream(unit, weights, small)
  local b = B.new():context():event(0, "waits", unit, 0)
  local sums = {}
  for i, w in ipairs(weights) do
    b:lfunc(i, i, "@a.lua", "f" .. i):stack(i, { F.lfunc(i, i) })
    b:sample(i, 0, 1, nil, w):sample(i, 0, 1, nil, small):sample(i, 0, 1, nil, w)
    sums[i] = w + small + w
  end
  return b:finish(), sums
end

local function name_of(i) return ("f%d (a.lua:%d)"):format(i, i) end

local function check(unit, weights, small)
  local bytes, sums = stream(unit, weights, small)
  local folded, p = t.render(bytes, "folded", { weight = "event" })
  t.equal(#p.problems, 0, "sound: " .. (p.problems[1] and p.problems[1].text or ""))
  local n, all = 0, 0
  for i, value in folded:gmatch("f(%d+) %(a%.lua:%d+%) (%d+)\n") do
    n = n + 1
    t.equal(tonumber(value), sums[tonumber(i)], "folded: " .. weights[tonumber(i)])
  end
  t.equal(n, #weights, "folded: rows")
  for i = 1, #sums do all = all + sums[i] end

  local d = json.decode((t.render(bytes, "json", {})))
  local of = {}
  for _, s in ipairs(d.samples) do of[s.weight] = (of[s.weight] or 0) + 1 end
  for _, w in ipairs(weights) do t.equal(of[w], 2, ("json: %.0f"):format(w)) end
  t.equal(of[small], #weights, "json: small ones")

  local proto = pprof.decode((t.render(bytes, "pprof", {})))
  t.equal(#proto.samples, #weights, "pprof: samples")
  for _, s in ipairs(proto.samples) do
    local i = tonumber(s[1].func.name:match("^f(%d+)"))
    local scale = unit == G.SPF_UNIT_US and 1000 or 1
    local got = 0
    for _, value in ipairs(s.values) do got = math.max(got, tonumber(value)) end
    t.equal(got, math.min(sums[i] * scale, 2^63 - 1024), "pprof: " .. weights[i])
  end

  local page = t.render(bytes, "flamegraph", { weight = "event" })
  local found = 0
  for _, name, value in page:match('"nodes":%[(.-)%]'):gmatch("(%d+),(%d+),(%d+)") do
    local i = tonumber(page:match('"names":%[(.-)%]'):gsub('"', ""):match(("[^,]*,?"):rep(name) .. "f(%d+)"))
    if i then
      found = found + 1
      t.equal(tonumber(value), sums[i], "page: " .. name_of(i))
    end
  end
  t.equal(found, #weights, "page: nodes")

  d = json.decode((t.render(bytes, "speedscope", { weight = "event" })))
  t.ok(math.abs(d.profiles[1].endValue - all) <= 1e-9 * all, "speedscope: end")
  for _, format in ipairs { "top", "tree", "svg", "gecko" } do
    local out = t.render(bytes, format, { weight = format ~= "gecko" and "event" or nil, limit = 0 })
    t.ok(out, format)
    t.ok(format == "gecko" or out:find(name_of(#weights), 1, true), format .. ": a row: " .. tostring(out))
    t.ok(not (out or ""):find("[^%w]nan") and not (out or ""):find("[^%w]inf[^%w]"), format .. ": nan or inf")
  end
end

local LARGE = { 2^49, 2^50 - 1, 2^50, 2^50 + 1, 2^51 - 1, 2^51, 2^52 - 1, 2^52, 2^52 + 3 }
for _, unit in ipairs { G.SPF_UNIT_NS, G.SPF_UNIT_BYTES, G.SPF_UNIT_COUNT, G.SPF_UNIT_US } do
  check(unit, LARGE, 7)
  check(unit, { 2^53, 2^53 + 4, 2^55, 2^58, 2^60, 2^61 }, 2^20)
end

-- -- Limits ----------------------------------------------------------------

local function problem_of(weights)
  local b = B.new():context():event(0, "waits", G.SPF_UNIT_NS, 0):lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) })
  for _, w in ipairs(weights) do b:sample(1, 0, 1, nil, w) end
  local folded, p = t.render(b:finish(), "folded", { weight = "event" })
  return p.problems[1] and p.problems[1].text, folded
end

local text, folded = problem_of { 2^62, 2^62 - 1024 }
t.equal(text, nil, "just below the limit")
t.equal(folded, "f (a.lua:1) 9223372036854774784\n", "just below the limit")
text = problem_of { 2^62, 2^62, 5 }
t.contains(text or "", "the weights of a stack add up to 2^63 or more", "at the limit")
text = problem_of { 2^63 }
t.contains(text or "", "expected a record of sysprof", "a weight at the limit")

-- The same in several files, and in several sessions of one. What is too much is left out.
local reader = require("sysprof.read.reader")

local function write_stream(path, ...)
  local b = B.new():context():event(0, "waits", G.SPF_UNIT_US, 0):lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) })
  for _, w in ipairs { ... } do b:sample(1, 0, 1, nil, w) end
  t.write_file(path, b:finish())
end

write_stream("half.bin", 2^62)
write_stream("less.bin", 2^62 - 1024)
local p = reader.read_all { "half.bin", "less.bin" }
t.equal(#p.problems, 0, "two files, just below the limit")
p = reader.read_all { "half.bin", "half.bin" }
t.equal(#p.problems, 1, "two files, at the limit: problems")
t.contains(p.problems[1].text, "the weights of a stack add up to 2^63 or more", "two files, at the limit")
t.equal(p.slots:weight(1), 2^62, "two files, at the limit: the sum")
t.equal(p.slots:samples(1), 1, "two files, at the limit: samples")
local file = io.open("both.bin", "wb")
t.equal(require("sysprof.read.mergefiles")({ "half.bin", "half.bin" }, function(s) file:write(s) end, {}), nil, "merge")
file:close()
local _
local status, out, err = t.parse("--weight=event both.bin")
t.equal(status, 3, "merged, at the limit: status")
t.contains(err, "the weights of a stack add up to 2^63 or more", "merged, at the limit")
t.equal(out, "f (a.lua:1) 4611686018427387904\n", "merged, at the limit: the sum")

-- Microseconds in pprof are nanoseconds.
status, _, err = t.parse("--format=pprof -o half.pb.gz half.bin")
t.equal(status, 3, "pprof: status")
t.contains(err, "1 value is too large for pprof, expected less than 2^63", "pprof")
write_stream("small.bin", 2^53)
status, _, err = t.parse("--format=pprof -o small.pb.gz small.bin")
t.equal(status, 0, "pprof, a small value: status: " .. err)

t.finish()
