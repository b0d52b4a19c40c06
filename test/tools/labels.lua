-- Labels of samples: in pprof and json, and as a filter.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local pprof = require("pprof_decode")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F = B.F

-- Each chunk begins without labels. Ids 1 and 40 are one set for users, 2 another one, 3 none.
local function stream()
  local b = B.new():context(7, 0):meta("pid", "7")
  for chunk = 1, 2 do
    if chunk == 2 then b:context(7, 10000) end
    b:lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) })
    b:labels(1, { { "route", "/a" }, { "tenant", "x=1" } }):labels(2, { { "route", "/b" } }):labels(3, {})
    b:labels(40, { { "tenant", "x=1" }, { "route", "/z" }, { "route", "/a" } })
    b:sample(1, 0, 1)
    b:labelled(1):sample(1, 0, 2):labelled(2):sample(1, 0, 4):labelled(40):sample(1, 0, 8)
    b:labelled(3):sample(1, 0, 16):labelled(1):labelled(0):sample(1, 0, 32):labelled(2)
    b:flush()
  end
  return b:context(7, 30000):finish()
end

local bytes = stream()

local function decoded(format, options)
  local p = assert(reader.parse_string(bytes, { timeline = true }))
  t.equal(p:problem_text(), nil, "complete")
  local out = {}
  require("sysprof.formats." .. format).render(assert(view.new(p, options)), function(s) out[#out + 1] = s end)
  return table.concat(out)
end

local function text(labels)
  local list = {}
  for key, value in pairs(labels or {}) do
    if key ~= "thread" and key ~= "vmstate" then list[#list + 1] = key .. ":" .. value end
  end
  table.sort(list)
  return table.concat(list, " ")
end

local function expect(counts, what)
  t.equal(counts[""], 98, what .. ": without labels")
  t.equal(counts["route:/a tenant:x=1"], 20, what .. ": two labels")
  t.equal(counts["route:/b"], 8, what .. ": one label")
end

local counts = {}
for _, s in ipairs(pprof.decode(decoded("pprof", {})).samples) do
  counts[text(s.labels)] = (counts[text(s.labels)] or 0) + s.values[1]
end
expect(counts, "pprof")
counts = {}
for _, s in ipairs(json.decode(decoded("json", {})).samples) do
  counts[text(s.labels)] = (counts[text(s.labels)] or 0) + 1
end
expect(counts, "json")
t.equal(decoded("folded", {}), "f (a.lua:1) 126\n", "folded: labels make no difference")
t.equal(reader.parse_string(bytes).slots:count(), 3, "a slot for each set")

t.with_file(bytes, function(path)
  for options, count in pairs {
    ["--label=route=/a"] = 20, ["--label=route=/b"] = 8, ["--label tenant=x=1"] = 20,
    ["--label=route=/a --label=route=/b"] = 28, ["--label=route=/b --label=tenant=x=1"] = false,
    ["--label=route=/z"] = false, ["--label=route="] = false, ["--label=x=1"] = false,
  } do
    local status, out, err = t.parse(options .. " " .. path)
    t.equal(status, 0, options .. ": status")
    t.equal(out, count and ("f (a.lua:1) %d\n"):format(count) or "", options)
    if not count then t.contains(err, "no sample passes the filters", options .. ": message") end
  end
  for _, wrong in ipairs { "route", "=/a" } do
    local status, _, err = t.parse(("--label=%s %s"):format(wrong, path))
    t.equal(status, 2, "no label: status")
    t.contains(err, "option '--label': expected KEY=VALUE", "no label")
  end
  local all = assert(reader.read_all { path, path })
  t.equal(all.slots:count(), 3, "two profiles: the same sets")
  local status, out = t.parse(("--label=route=/a %s %s"):format(path, path))
  t.equal(status .. out, "0f (a.lua:1) 40\n", "two profiles")
end)

-- What a view says under labels that no sample has.
for asked, expected in pairs {
  ["k=v"] = "no sample has the label 'k'; labels: route, tenant",
  ["rout=/a"] = "no sample has the label 'rout' (did you mean 'route'?); labels: route, tenant",
  ["route=/z"] = "no sample has the label 'route=/z'; values of route: /a, /b",
  ["tenant=yyyy"] = "no sample has the label 'tenant=yyyy'; values of tenant: x=1",
  ["tenant=x=2"] = "no sample has the label 'tenant=x=2' (did you mean 'x=1'?); values of tenant: x=1",
  ["tenant="] = "no sample has the label 'tenant='; values of tenant: x=1",
  ["route=/b,tenant=x=1"] = false,	-- Each has samples, but none has both.
  ["route=/z,route=/y"] = "no sample has the label 'route=/z'; values of route: /a, /b",
  ["tenant=x=1,k=v"] = "no sample has the label 'k'; labels: route, tenant",
} do
  local list = {}
  for one in asked:gmatch("[^,]+") do list[#list + 1] = one end
  local v = assert(view.new(assert(reader.parse_string(bytes)), { labels = list }))
  v:each(function() t.ok(false, asked .. ": no sample passes") end)
  t.equal(v:nothing_text(), "no sample passes the filters" .. (expected and ": " .. expected or ""), asked)
end

-- -- Rows ------------------------------------------------------------------

local function rows_of(by)
  local out = {}
  local v = assert(view.new(assert(reader.parse_string(bytes)), { by = by }))
  for i, row in ipairs((require("sysprof.formats.rows").hottest(v))) do
    out[i] = ("%s %d"):format(row.entry.text, row.self)
  end
  return table.concat(out, ", ")
end
t.equal(rows_of("label"), "[no label] 98, route=/a tenant=x=1 20, route=/b 8", "rows by sets")
t.equal(rows_of("label:route"), "[no label] 98, /a 20, /b 8", "rows by route")
t.equal(rows_of("label:tenant"), "[no label] 106, x=1 20", "rows by tenant")
t.equal(rows_of("label:x"), "[no label] 126", "rows by a label that nothing has")
t.with_file(bytes, function(path)
  local _, _, said = t.parse("--format=top --by=label:rout " .. path)
  t.contains(said, "warning: no sample has the label 'rout' (did you mean 'route'?); labels: route, tenant\n", "no such rows")
  t.equal(select(3, t.parse("--format=top --by=label:route " .. path)), "", "such rows")
  local _, out = t.parse("--format=top --by=label:route " .. path)
  t.contains(out, "  route\n", "head")
  t.contains(out, "  /a\n", "row")
  local status, _, err = t.parse("--format=top --by=label: " .. path)
  t.equal(status, 2, "no key")
  t.contains(err, "got 'label:'", "no key")
end)
bytes = B.new():context(1, 0):labels(1, { { "[other]", "[other]" } }):labelled(1):sample(0, 0):finish()
t.equal(rows_of("label:route"), "[other] 1", "labels without room")
bytes = stream()

-- -- Damage ----------------------------------------------------------------

local p = reader.parse_string(B.new():context(1, 0):labelled(9):sample(0, 0, 2):labelled(50):sample(0, 0):finish())
t.equal(p:totals(), 3, "sets that are not defined: the samples are there")
t.contains(p:problem_text(), "from this chunk on, 2 sets of labels are not defined", "sets that are not defined")

-- Names that must not break any format.
local b = B.new():context(1, 0):labels(1, { { "a\nb", '"</script>' }, { "", "" }, { "\255", "\27[31m" } })
bytes = b:labelled(1):sample(0, 0):finish()
t.equal(text(json.decode(decoded("json", {})).samples[1].labels), ': \\xff:?[31m a?b:"</script>', "json: odd labels")
-- Servers refuse a profile with other keys.
t.equal(text(pprof.decode(decoded("pprof", {})).samples[1].labels), '_:?[31m a_b:"</script>', "pprof: odd labels")
b = B.new():context(1, 0):labels(1, { { "a.b-c d", "1" }, { "9", "2" }, { "age", "old" }, { "e_F0", "3" } })
bytes = b:labelled(1):sample(0, 0):finish()
t.equal(text(pprof.decode(decoded("pprof", {})).samples[1].labels), "_9:2 a_b_c_d:1 age_:old e_F0:3", "pprof: keys")

-- Many sets, each with samples of several events.
b = B.new():context(1, 0):event(0, "cpu", G.SPF_UNIT_US, 1e6):event(1, "faults", G.SPF_UNIT_COUNT, 1)
for i = 1, 500 do
  b:labels(i, { { "request", tostring(i) } }):labelled(i):sample(0, 0, 1, nil, nil, 0):sample(0, 0, 2, nil, nil, 1)
end
p = reader.parse_string(b:finish())
t.equal(p.slots:count(), 1000, "many sets")
local v = view.new(p, { event = "faults", labels = { "request=77" } })
local out = {}
require("sysprof.formats.folded").render(v, function(s) out[#out + 1] = s end)
t.equal(table.concat(out), "[no stack] 2\n", "one of many sets")

t.finish()
