----------------------------------------------------------------------------
-- Naive flame graphs: the data in the page, and the boxes of the SVG picture.
--
-- Each check renders a case (naive_profile.lua) and compares it with loops over all samples.
----------------------------------------------------------------------------

local json = require("json_decode")
local naive = require("naive_profile")
local t = require("tools_test")

local same, rows_of, sum_of = naive.same, naive.rows_of, naive.sum_of
local unit_of, amount_text, render = naive.unit_of, naive.amount_text, naive.render
local both_rows, plain, exact = naive.both_rows, naive.plain, naive.exact
local add_paths, paths = naive.add_paths, naive.paths

local checks = {}

-- -- flamegraph ------------------------------------------------------------

local KINDS = { "lua", "compiled", "builtin", "c", "vm", "marker", "unknown" }

-- Returns self and base by path of the page's data; a function that is also compiled is two.
local function nodes_of_page(case, page)
  local data = json.decode(page:match('id="data">\n(.-)\n</script>'))
  local got, path, items = {}, {}, case.base and 4 or 3
  local in_order, is_once = true, true
  for i = 1, #data.nodes, items do
    local depth, name = data.nodes[i], data.nodes[i + 1] + 1
    local is_compiled = KINDS[data.kinds[name] + 1] == "compiled"
    local text = data.names[name] .. (is_compiled and "\1" or "")
    in_order = in_order and depth <= #path + 1 and (not path[depth] or path[depth] < text)
    for k = #path, depth, -1 do path[k] = nil end
    path[depth] = text
    local key = table.concat(path, "\n")
    is_once = is_once and not got[key]
    got[key] = { self = data.nodes[i + 2], base = case.base and data.nodes[i + 3] or 0,
		 kind = KINDS[data.kinds[name] + 1] }
  end
  t.ok(in_order, case.what .. ", flamegraph: callers come first, siblings by name")
  t.ok(is_once, case.what .. ", flamegraph: a path has one node")
  return got, data
end

function checks.flamegraph(case)
  local rows, base, scale = both_rows(case)
  local all = add_paths(paths(rows, exact), base, plain, true)
  local got, data = nodes_of_page(case, render(case, "flamegraph"))
  local unit, event = unit_of(case.naive, case.options)
  t.equal(data.unit .. " " .. data.event, unit .. " " .. event, case.what .. ", flamegraph: unit")
  local shown, expected = {}, {}
  for key, node in pairs(all) do
    local is_compiled = key:sub(-1) == "\1"
    expected[key] = ("%s %.0f"):format(is_compiled and "compiled" or node.part.kind, node.self)
  end
  for key, node in pairs(got) do
    local before = all[key] and all[key].base * scale or 0
    local fits = math.abs(node.base - before) <= 1e-5 * before
    shown[key] = ("%s %.0f%s"):format(node.kind, node.self, fits and "" or " base " .. node.base)
  end
  same(shown, expected, case.what .. ", flamegraph")
end

-- -- svg -------------------------------------------------------------------

local WIDE, NARROW, ROW = 860, 0.6, 17

local function unescape(s)
  return (s:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&#39;", "'")
	   :gsub("&amp;", "&"))
end

-- Returns the boxes of a picture: { name, title, x, width, depth }.
local function boxes_of(svg)
  local list, bottom = {}, nil
  for title, x, y, width in svg:gmatch('<g><title>(.-)</title><rect x="([%d.]+)" y="(%d+)" ' ..
				       'width="([%d.]+)"') do
    title, bottom = unescape(title), bottom or tonumber(y)
    list[#list + 1] = { name = title:match("^(.*) %([^()]*%%%)$"), title = title,
			x = tonumber(x), width = tonumber(width), depth = (bottom - y) / ROW }
  end
  return list
end

-- Returns the box below the middle of another one.
local function caller_of(boxes, box)
  local middle = box.x + box.width / 2
  for _, other in ipairs(boxes) do
    if other.depth == box.depth - 1 and other.x < middle and middle < other.x + other.width then
      return other
    end
  end
end

local function overlaps(a, b)
  return a.depth == b.depth and a.x + a.width > b.x + 0.011 and b.x + b.width > a.x + 0.011
end

-- Compiled and interpreted code of a function are two boxes of the same name.
local function count_boxes(boxes, what)
  local count, fits = {}, true
  for i, box in ipairs(boxes) do
    local caller = caller_of(boxes, box)
    fits = fits and (caller or box.depth == 0)
    for k = 1, i - 1 do fits = fits and not overlaps(box, boxes[k]) end
    box.path = (caller and caller.path or "") .. "\n" .. box.name
    local key = box.path .. "\n" .. box.title
    count[key] = (count[key] or 0) + 1
  end
  t.ok(fits, what .. ", svg: each box stands on one, beside the others")
  return count
end

function checks.svg(case)
  local rows = rows_of(case.naive, case.options)
  local whole, expected = sum_of(rows), {}
  local unit, event = unit_of(case.naive, case.options)
  local function add(path, text, total)
    if total * (WIDE / whole) < NARROW then return end
    local key = ("%s\n%s (%s, %.2f%%)"):format(path:gsub("\1", ""), text,
      amount_text(unit, event, total), 100 * total / whole)
    expected[key] = (expected[key] or 0) + 1
  end
  if whole > 0 then add("\nall", "all", whole) end
  for key, node in pairs(paths(rows, exact)) do
    add("\nall\n" .. key, node.part.text, node.total)
  end
  local boxes = boxes_of(render(case, "svg"))
  same(count_boxes(boxes, case.what), expected, case.what .. ", svg")
end

return checks
