-- The formats svg and tree: the same numbers as folded stacks, and well-formed.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local made = require("made_profile")
local text = require("sysprof.base.text")
local G = require("sysprof.base.grammar")
local F = B.F

-- -- XML -------------------------------------------------------------------

-- Checks that elements are closed in order and all else is text; returns the
-- number of elements by name.
local function check_xml(s)
  local open, count, at = {}, {}, 1
  s = s:gsub("^<%?xml [^>]*%?>", "")
  while true do
    local from, to, close, name, rest, empty = s:find("<(/?)(%a+)([^<>]*)(/?)>", at)
    local between = s:sub(at, (from or 0) - 1)
    t.ok(not between:find("[<>]"), "svg: text has no bare < or >")
    for entity in between:gmatch("&([^;]*;?)") do
      t.ok(entity:find("^%a+;$") or entity:find("^#%d+;$"), "svg: &" .. entity)
    end
    if not from then break end
    if rest:sub(-1) == "/" then empty, rest = "/", rest:sub(1, -2) end
    t.equal((rest:gsub(' [%a:]+="[^"]*"', "")), "", "svg: attributes")
    if close == "/" then
      t.equal(table.remove(open), name, "svg: end of an element")
    else
      count[name] = (count[name] or 0) + 1
      if empty ~= "/" then open[#open + 1] = name end
    end
    at = to + 1
  end
  t.equal(#open, 0, "svg: open elements")
  return count
end

local function unescape(s)
  return (s:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&#39;", "'")
	   :gsub("&amp;", "&"))
end

-- -- svg -------------------------------------------------------------------

local stream = made.stream()
local svg = t.render(stream, "svg", { title = "</text><script>alert(3)</script>" })
local count = check_xml(svg)
t.equal(count.svg, 1, "svg: elements")
t.equal(count.script, nil, "svg: no script")
t.equal(text.clean(svg:gsub("\n", "")), (svg:gsub("\n", "")), "svg: clean text")

-- Totals of all frames that are wide enough, by name.
local titles, boxes, rows = {}, {}, {}
for title, x, y, width, height in svg:gmatch('<g><title>(.-)</title><rect x="([%d.]+)" y="(%d+)" ' ..
					     'width="([%d.]+)" height="(%d+)"') do
  rows[#rows + 1] = tonumber(y)
  t.equal(tonumber(height), 16, "svg: height of a frame")
  local name, value = unescape(title):match("^(.*) %((%d+) samples?, [%d.]+%%%)$")
  t.ok(name, "svg: title " .. title)
  titles[name] = (titles[name] or 0) + tonumber(value)
  boxes[#boxes + 1] = { name = name, value = tonumber(value), x = tonumber(x),
			width = tonumber(width) }
end
t.equal(boxes[1].name, "all", "svg: root")
for _, y in ipairs(rows) do t.equal((rows[1] - y) % 17, 0, "svg: row of a frame") end
local _, p = t.render(stream)
t.equal(boxes[1].value, (p:totals()), "svg: samples")
for _, box in ipairs(boxes) do
  t.ok(math.abs(box.width - box.value * 860 / boxes[1].value) < 0.011, "svg: width of a frame")
  t.ok(box.x > 9.98 and box.x + box.width < 870.02, "svg: place of a frame")
end
local totals = {}
for stack, value in t.render(stream):gmatch("(.-) (%d+)\n") do
  for name in stack:gmatch("[^;]+") do totals[name] = (totals[name] or 0) + value end
end
for name, total in pairs(totals) do
  local sum = 0
  for title, value in pairs(titles) do
    if text.folded(title) == name then sum = sum + value end
  end
  t.equal(sum, total, "svg: total of " .. name)
end
check_xml((t.render(stream, "svg", { weight = "cpu" })))
check_xml((t.render(B.new():finish(), "svg")))

-- The event and the total of all boxes stand in the picture.
for _, case in ipairs { { "cpu", nil, "cpu: 3 samples" }, { "cpu", "event", "cpu: 4.500 ms" }, { "alloc", nil, "alloc: 4.4 KiB" },
			{ "alloc", "objects", "alloc: 21 objects" }, { "a<b", "event", "a&lt;b: 4500 a&lt;b" } } do
  local G = require("sysprof.base.grammar")
  local unit = case[1] == "cpu" and G.SPF_UNIT_US or case[1] == "alloc" and G.SPF_UNIT_BYTES or G.SPF_UNIT_COUNT
  local b = B.new():context():meta("clock", case[1]):event(0, case[1], unit, 1000, { { G.SPF_FIELD_COUNT, "objects" } })
  b:lfunc(1, 1, "@x", "f"):stack(1, { F.lfunc(1, 1) })
  for _ = 1, 3 do b:sample(1, 0, 1, nil, 1500, 0, { 7 }) end
  svg = t.render(b:finish(), "svg", { weight = case[2], title = "a.bin" })
  t.contains(svg, ">a.bin</text>\n<text x=\"10\" y=\"36\">" .. case[3] .. "</text>\n", "svg: the total")
end

-- A function that is also compiled is one box.
do
  local b = B.new():context():lfunc(1, 1, "@x", "f"):lfunc(2, 2, "@x", "g")
  b:stack(1, { F.cbound, F.lfunc(1, 1) }):stack(2, { F.cbound, F.lfunc(1, 1), F.trace(1, 1) })
  b:stack(3, { F.cbound, F.lfunc(1, 1), F.lfunc(2, 2), F.trace(1, 1) })
  svg = t.render(b:sample(1, 0, 1):sample(2, 0, 2):sample(3, 0, 1):finish(), "svg")
  t.equal(select(2, svg:gsub("<title>f %(x:1%) ", "")), 1, "svg: one box")
  t.ok(svg:find("<title>f %(x:1%) %(4 samples, 100.00%%%)</title><rect [^>]+/><rect [^>]+/>"), "svg: both colours")
end

-- A text is cut between characters.
local b = B.new():context():lfunc(1, 1, "@x", ("\195\164"):rep(500))
b:stack(1, { F.cbound, F.lfunc(1) }):sample(1, 0)
svg = t.render(b:finish(), "svg")
check_xml(svg)
t.ok(svg:find(">" .. ("\195\164"):rep(100) .. "[\195\164]*%.%.</text>"), "svg: a long name")
t.equal(text.clean(svg:gsub("\n", "")), (svg:gsub("\n", "")), "svg: cut text is clean")

-- A change that chance can make is grey, and said.
do
  local reader, view = require("sysprof.read.reader"), require("sysprof.show.view")
  -- Ticks of 1 ms each: f and g in turn, f as often as g, or so many times.
  local function ticks(n, of_f)
    local s = B.new():context(1, 0):event(0, "cpu-clock", G.SPF_UNIT_US, 1000000)
    s:lfunc(1, 1, "@x", "f"):lfunc(2, 5, "@x", "g"):stack(1, { F.lfunc(1) }):stack(2, { F.lfunc(2) })
    for i = 1, n do s:sample(i % of_f == 0 and 2 or 1, 0) end
    return s:finish()
  end
  local function compared(before, after)
    local options, out = { weight = "event", amounts = true }, {}
    local v = assert(view.new(assert(reader.parse_string(after, { spread = true })), options))
    v:compare_with(assert(view.new(assert(reader.parse_string(before, { spread = true })), options)))
    require("sysprof.formats.svg").render(v, function(s) out[#out + 1] = s end)
    return table.concat(out)
  end
  local function marked(picture, name)
    return picture:match("<title>" .. name .. " ([^<]*)</title>"):find("~: no more than chance", 1, true) ~= nil
  end
  local same, more = compared(ticks(200, 2), ticks(204, 2)), compared(ticks(200, 2), ticks(400, 4))
  t.ok(marked(same, "f %(x:1%)") and marked(same, "g %(x:5%)"), "svg: changes that may be chance")
  t.ok(not marked(more, "f %(x:1%)") and marked(more, "g %(x:5%)"), "svg: a change, and one that may be chance")
  t.contains(same, "the same, or chance", "svg: legend of chance")
  check_xml(more)
end

-- -- tree ------------------------------------------------------------------

b = B.new():context()
for fid, name in ipairs { "main", "a", "b", "c", "d" } do b:lfunc(fid, fid, "@x", name) end
b:stack(1, { F.cbound, F.lfunc(1), F.lfunc(2) })
b:stack(2, { F.cbound, F.lfunc(1), F.lfunc(2), F.trace(1, 1) })
b:stack(3, { F.cbound, F.lfunc(1), F.lfunc(3) })
b:stack(4, { F.cbound, F.lfunc(1), F.lfunc(3), F.lfunc(4) })
b:stack(5, { F.cbound, F.lfunc(4) }):stack(6, { F.cbound, F.lfunc(5) })
b:sample(1, 0, 100):sample(2, 0, 200):sample(3, 0, 400):sample(4, 0, 291)
b:sample(5, 0, 4):sample(6, 0, 5)
t.equal((t.render(b:finish(), "tree")), [[
       total  total%         self   self%  function
        1000   100.0            0     0.0  all
         991    99.1            0     0.0    main (x:1)
         691    69.1          400    40.0      b (x:3)
         291    29.1          291    29.1        c (x:4)
         300    30.0          300    30.0      a (x:2)
           5     0.5            5     0.5    d (x:5)
           4     0.4            4     0.4    (1 more, each below 0.5%)
]], "tree")
t.contains(t.render(stream, "tree", { weight = "cpu" }), "total ms", "tree, cpu")
t.equal((t.render(B.new():finish(), "tree")),
	"       total  total%         self   self%  function\n", "tree: empty")
local tree = t.render(stream, "tree")
t.equal(text.clean(tree:gsub("\n", "")), (tree:gsub("\n", "")), "tree: clean text")

-- Deep stacks.
b = B.new():context():lfunc(1, 1, "@x", "f")
local deep = { F.cbound }
for i = 2, 5000 do deep[i] = F.lfunc(1) end
b:stack(1, deep):sample(1, 0)
t.ok(#t.render(b:finish(), "tree") < 5000 * 250, "tree: a deep stack is not too wide")
check_xml((t.render(b:bytes(), "svg")))

t.finish()
