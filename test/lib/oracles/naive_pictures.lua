----------------------------------------------------------------------------
-- Naive flame graphs: the data in the page, and the boxes of the SVG picture.
--
-- Each check renders a case (naive_profile.lua) and compares it with loops over all samples.
----------------------------------------------------------------------------

local json = require("json_decode")
local naive = require("naive_profile")
local naive_activity = require("naive_activity")
local t = require("tools_test")

local same, rows_of, sum_of = naive.same, naive.rows_of, naive.sum_of
local unit_of, amount_text, render = naive.unit_of, naive.amount_text, naive.render
local both_rows, plain, exact = naive.both_rows, naive.plain, naive.exact
local add_paths, paths, has_states = naive.add_paths, naive.paths, naive.has_states

local checks = {}

-- -- flamegraph ------------------------------------------------------------

local KINDS = { "lua", "compiled", "builtin", "c", "vm", "marker", "unknown", "waiting" }

-- Returns self and other (that of the base, or what is off CPU) by path of the page's data; a function that
-- is also compiled is two.
local function nodes_of_page(case, page)
  local data = json.decode(page:match('id="data">\n(.-)\n</script>'))
  local has_other = case.base or has_states(case)
  local got, path, items = {}, {}, has_other and 4 or 3
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
    got[key] = { self = data.nodes[i + 2], other = has_other and data.nodes[i + 3] or 0,
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
  t.equal(data.diff, case.base ~= nil, case.what .. ", flamegraph: has a base")
  t.equal(data.states, has_states(case), case.what .. ", flamegraph: has states")
  naive_activity.check_page(case, data.threads)
  local shown, expected = {}, {}
  for key, node in pairs(all) do
    local is_compiled = key:sub(-1) == "\1"
    expected[key] = ("%s %.0f"):format(is_compiled and "compiled" or node.part.kind, node.self)
  end
  for key, node in pairs(got) do
    local other = all[key] and (case.base and all[key].base * scale or has_states(case) and all[key].off) or 0
    local fits = math.abs(node.other - other) <= 1e-5 * other
    shown[key] = ("%s %.0f%s"):format(node.kind, node.self, fits and "" or
      ("with %.6g, not %.6g"):format(node.other, other))
  end
  same(shown, expected, case.what .. ", flamegraph")
end

-- -- svg -------------------------------------------------------------------

local WIDE, NARROW, ROW = 860, 0.6, 17
local RIGHT = 0.021	-- Widths and places have two digits.

local function unescape(s)
  return (s:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&#39;", "'")
	   :gsub("&amp;", "&"))
end

local RECT = '<rect x="([%d.]+)" y="(%d+)" width="([%d.]+)" height="16" fill="([^"]*)"/>'

-- Is this the colour of a thread that could have run?
local function is_ready(fill) return math.abs((tonumber(fill:match("^hsl%((%d+),")) or 999) - 48) <= 8 end

-- Returns the boxes of a picture: { name, title, x, width, depth, fill, right }. right is what stands on a box, or nil:
-- { x, width, fill, is_beside }. A time off CPU may have two rectangles, which count as one.
local function boxes_of(svg)
  local list, bottom = {}, nil
  for title, x, y, width, fill, rest in svg:gmatch("<g><title>(.-)</title>" .. RECT .. "(.-)</g>") do
    title, bottom = unescape(title), bottom or tonumber(y)
    local box = { name = title:match("^(.*) %([^()]*%)$"), title = title, x = tonumber(x), width = tonumber(width),
		  depth = (bottom - y) / ROW, fill = fill }
    for x2, y2, width2, fill2 in rest:gmatch(RECT) do
      local right = box.right
      if is_ready(fill) then
	box.width = box.width + width2
      elseif right then
	right.is_beside = right.is_beside and is_ready(right.fill) and y2 == y and
			  math.abs(right.x + right.width - x2) < RIGHT
	right.width, right.fill = right.width + width2, fill2
      else
	box.right = { x = tonumber(x2), width = tonumber(width2), fill = fill2, is_beside = y2 == y }
      end
    end
    list[#list + 1] = box
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

-- Whether a colour is that of a state; of what is gone; of anything else in a comparison.
local function has_hue(fill, hue) return math.abs((tonumber(fill:match("^hsl%((%d+),")) or 999) - hue) <= 8 end
local function is_on(fill) return has_hue(fill, 18) end
local function is_compiled(fill) return has_hue(fill, 206) and fill:find(",72%,", 1, true) ~= nil end
local function is_interpreted(fill) return has_hue(fill, 96) and fill:find(",48%,", 1, true) ~= nil end
local function is_off(fill) return has_hue(fill, 212) or is_ready(fill) end
local function is_gone(fill) return fill == "url(#gone)" end
local function is_change(fill) return has_hue(fill, 4) or has_hue(fill, 214) end

-- Checks the right parts of the boxes. widths: lists of their widths by path and title. is_left,
-- is_right: whether a colour is that of a part.
local function check_right_parts(boxes, widths, is_left, is_right, what)
  local got, fits, are_right = {}, true, true
  for _, box in ipairs(boxes) do
    local right, key = box.right, box.path .. "\n" .. box.title
    fits = fits and (not right or right.is_beside and is_left(box.fill) and is_right(right.fill) and
		     math.abs(right.x + right.width - box.x - box.width) < RIGHT)
    fits = fits and (is_left(box.fill) or is_right(box.fill))
    got[key] = got[key] or {}
    table.insert(got[key], right and right.width or is_right(box.fill) and box.width or 0)
  end
  t.ok(fits, what .. ", svg: the right parts stand at the right")
  for key, list in pairs(widths) do
    table.sort(list)
    table.sort(got[key] or {})
    for i, width in ipairs(list) do
      are_right = are_right and got[key] and math.abs(width - (got[key][i] or -1)) < RIGHT
    end
  end
  t.ok(are_right, what .. ", svg: the right parts are as wide as their shares")
end

-- Adds up what each path of a comparison has in its callees, too: before, gone (in stacks of the base alone).
local function add_up_base(all, scale)
  local root = { total = 0, before = 0, gone = 0 }
  for _, node in pairs(all) do node.before, node.gone = 0, 0 end
  for key, leaf in pairs(all) do
    root.total = root.total + leaf.self
    while key do
      local node = all[key] or root
      node.before = node.before + leaf.base * scale
      if leaf.self == 0 then node.gone = node.gone + leaf.base * scale end
      key = node.up
    end
  end
  return root
end

-- Each box of a comparison has room for what is gone, at its right.
local function check_svg_comparison(case)
  local rows, base, scale = both_rows(case)
  local all = add_paths(paths(rows, plain), base, plain, true)
  local root = add_up_base(all, scale)
  local unit, event = unit_of(case.naive, case.options)
  local amounts = naive.event_of(case.naive, case.options).left_of
  local expected, widths, before = {}, {}, {}
  local size = root.total + root.gone
  local pixels = size > 0 and WIDE / size or 0
  local function add(path, text, node)
    local width, share = (node.total + node.gone) * pixels, root.total > 0 and 100 / root.total or 0
    if width < NARROW - 1e-6 then return end
    local title = ("%s (%s, %.2f%%"):format(text, amount_text(unit, event, node.total), share * node.total)
    if amounts then title = title .. ", before " .. amount_text(unit, event, node.before) end
    local key = path .. "\n" .. title .. ")"
    expected[key], widths[key] = (expected[key] or 0) + 1, widths[key] or {}
    before[key] = share * node.before
    table.insert(widths[key], node.gone * pixels)
  end
  if size > 0 then add("\nall", "all", root) end
  for key, node in pairs(all) do add("\nall\n" .. key, node.part.text, node) end
  local boxes, is_right = boxes_of(render(case, "svg")), true
  for _, box in ipairs(boxes) do
    if not amounts then
      box.title, box.before = box.title:match("^(.*), before ([%d.]+)%%%)$")
      box.title = (box.title or "?") .. ")"
    end
  end
  same(count_boxes(boxes, case.what), expected, case.what .. ", svg")
  for _, box in ipairs(boxes) do
    local key = box.path .. "\n" .. box.title
    is_right = is_right and (amounts or math.abs(tonumber(box.before) - (before[key] or -1)) < 0.0051)
  end
  t.ok(is_right, case.what .. ", svg: shares of the base")
  check_right_parts(boxes, widths, is_change, is_gone, case.what)
end

function checks.svg(case)
  if case.base then return check_svg_comparison(case) end
  local rows = rows_of(case.naive, case.options)
  local whole, off, expected, widths = sum_of(rows), 0, {}, {}
  local unit, event = unit_of(case.naive, case.options)
  -- Right parts are off CPU, or of Lua functions what is interpreted; nil of other boxes.
  local function add(path, text, total, right)
    if total * (WIDE / whole) < NARROW then return end
    local key = ("%s\n%s (%s, %.2f%%)"):format(path, text,
      amount_text(unit, event, total), 100 * total / whole)
    expected[key], widths[key] = (expected[key] or 0) + 1, widths[key] or {}
    if right then table.insert(widths[key], right * (WIDE / whole)) end
  end
  for _, row in ipairs(rows) do off = off + (naive.is_off(row.sample) and row.value or 0) end
  local states = has_states(case)
  local is_left, is_right = states and is_on or is_compiled, states and is_off or is_interpreted
  if whole > 0 then add("\nall", "all", whole, states and off or nil) end
  for key, node in pairs(paths(rows, plain)) do
    local interpreted = node.part.kind == "lua" and node.total - node.compiled or nil
    add("\nall\n" .. key, node.part.text, node.total, states and node.off_total or interpreted)
  end
  local boxes = boxes_of(render(case, "svg"))
  same(count_boxes(boxes, case.what), expected, case.what .. ", svg")
  local halved = {}
  for _, box in ipairs(boxes) do
    if states or is_left(box.fill) or is_right(box.fill) then halved[#halved + 1] = box end
    if not states and box.right then t.ok(is_left(box.fill), case.what .. ", svg: other boxes have one rectangle") end
  end
  check_right_parts(halved, widths, is_left, is_right, case.what)
end

return checks
