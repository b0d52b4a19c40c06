----------------------------------------------------------------------------
-- Flame graph as an SVG picture, for documents.
--
-- The title of a frame has its name and value; viewers show it as a tooltip. Frames
-- narrower than 0.6 pixels are left out. sysprof.formats.flamegraph makes an
-- interactive page.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local calltree = require("sysprof.show.calltree")
local nodechance = require("sysprof.show.nodechance")
local text = require("sysprof.base.text")

local svg = { needs_spread = true }

local numbers = array.kind("int32_t")

local WIDTH, MARGIN, ROW, HEAD = 880, 10, 17, 46
local NARROW, CHAR, TEXT_MIN = 0.6, 6.6, 20

-- By kind: hue, saturation, lightness, as in page/palette.js.
local COLOURS = {
  lua = { 96, 48, 66 }, compiled = { 206, 72, 70 }, builtin = { 172, 45, 64 },
  c = { 38, 88, 68 }, vm = { 12, 78, 72 }, marker = { 220, 9, 74 },
  unknown = { 268, 32, 76 }, waiting = { 226, 34, 80 }, all = { 220, 12, 86 },
  on = { 18, 84, 70 }, ready = { 48, 90, 64 }, off = { 212, 52, 80 },	-- States of threads.
}

local STYLE = "text { font: 11px ui-monospace, 'DejaVu Sans Mono', monospace; " ..
  "fill: #15181c; } rect { stroke: #fff; stroke-width: 0.4; } " ..
  ".title { font: 600 15px sans-serif; }"

-- What a comparison has no more.
local HATCHED = '<defs><pattern id="gone" width="6" height="6" patternUnits="userSpaceOnUse" ' ..
  'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff" stroke="none"/>' ..
  '<rect width="2" height="6" fill="hsl(214,60%,62%)" stroke="none"/></pattern></defs>\n'

local function hsl(hue, saturation, lightness)
  return ("hsl(%d,%d%%,%d%%)"):format(hue % 360, saturation, lightness)
end

-- Returns a colour of a kind, varied a little by the name if there is one.
local function colour(kind, name)
  local c, h = COLOURS[kind], 0
  if not name then return hsl(unpack(c)) end
  for i = 1, #name do h = (h * 31 + name:byte(i)) % 65536 end
  return hsl(c[1] + h % 16 - 8, c[2], c[3] + math.floor(h / 16) % 8 - 4)
end

-- Returns the colour of a change from -1 (all gone) to 1 (all new), as page/palette.js.
local function changed(change)
  local much = math.abs(change)
  return hsl(change > 0 and 4 or 214, much < 0.02 and 0 or 30 + 55 * much, 88 - 26 * much)
end

-- Returns as many characters of a text as there is room for.
local function shortened(s, room)
  local n, out = 0, {}
  for c in s:gmatch("[%z\1-\127\194-\244][\128-\191]*") do
    n = n + 1
    out[n] = c
  end
  if n <= room then return s end
  return table.concat(out, "", 1, room - 2) .. ".."
end

-- -- Boxes -----------------------------------------------------------------

-- A picture is { view =, calls =, compiled =, gone =, is_chance =, ready = }; gone and is_chance(node) are nil without
-- a base, compiled with one, ready without states. A box of a comparison has room for what is in the base alone, too.
local function size_of(picture, node)
  return picture.calls.list[node].total + (picture.gone and picture.gone[node] or 0)
end

local function name_of(picture, node)
  return node == 0 and "all" or picture.calls:entry(node).text
end

-- Calls box(node, depth, x, width) for each node that is wide enough, callers first.
-- Returns the depth of the deepest.
local function layout(picture, box)
  local whole, deepest = size_of(picture, 0), 0
  local scale = whole > 0 and (WIDTH - 2 * MARGIN) / whole or 0
  local free = { [0] = MARGIN }	-- By depth: where the next box begins.
  picture.calls:visit(function(node, depth)
    local x, w = free[depth], size_of(picture, node) * scale
    free[depth], free[depth + 1] = x + w, x
    if w < NARROW then return end
    box(node, depth, x, w)
    deepest = math.max(deepest, depth)
  end)
  return deepest
end

-- Returns the colour of a box, the share of its right part, which is off CPU, gone, or interpreted, and its colour;
-- then the share of what stands before that, which is runnable, and its colour, if there is some.
local function look_of(picture, node)
  local name, sums = name_of(picture, node), picture.calls.list[node]
  if picture.gone then
    local size, most = size_of(picture, node), math.max(sums.total, sums.other_total)
    local is_change = most > 0 and not (picture.is_chance and picture.is_chance(node))
    return changed(is_change and (sums.total - sums.other_total) / most or 0),
	   size > 0 and picture.gone[node] / size or 0, "url(#gone)"
  elseif picture.view:has_states() then
    local off, ready, own = 0, 0, node ~= 0 and name or nil
    if sums.total > 0 then off, ready = sums.other_total / sums.total, picture.ready[node] / sums.total end
    return colour("on", own), off - ready, colour("off", own), ready, colour("ready", own)
  end
  local kind, compiled = node == 0 and "all" or picture.calls:entry(node).kind, picture.compiled[node]
  if compiled == 0 then return colour(kind, name), 0 end
  return colour("compiled", name), 1 - compiled / sums.total, colour(kind, name)
end

local function rectangle(x, y, width, fill)
  return ('<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>'):format(x, y, width, ROW - 1, fill)
end

-- Returns the coloured part of a box.
local function rectangles(picture, node, x, y, width)
  local fill, share, right, before, middle = look_of(picture, node)
  if share >= 1 then return rectangle(x, y, width, right) end
  before = before or 0
  return (share + before < 1 and rectangle(x, y, width, fill) or "") ..
	 (before > 0 and rectangle(x + width * (1 - share - before), y, width * before, middle) or "") ..
	 (share > 0 and rectangle(x + width * (1 - share), y, width * share, right) or "")
end

-- Returns the name and the values of a node.
local function title_of(picture, node)
  local view, sums, whole = picture.view, picture.calls.list[node], picture.calls.list[0].total
  local function share(value) return ("%.2f%%"):format(whole > 0 and 100 * value / whole or 0) end
  local before = ""
  if view.base then
    before = ", before " .. (view:compares_amounts() and view:amount_text(sums.other_total) or
			     share(sums.other_total))
    if picture.is_chance and picture.is_chance(node) then before = before .. ", ~: no more than chance" end
  end
  return ("%s (%s, %s%s)"):format(name_of(picture, node), view:amount_text(sums.total),
    share(sums.total), before)
end

local function write_box(picture, write, node, x, y, w)
  write(("<g><title>%s</title>%s"):format(text.html(title_of(picture, node)),
    rectangles(picture, node, x, y, w)))
  local room = math.floor((w - 6) / CHAR)
  if w >= TEXT_MIN and room >= 3 then
    write(('<text x="%.2f" y="%d">%s</text>'):format(x + 3, y + 11,
      text.html(shortened(name_of(picture, node), room))))
  end
  write("</g>\n")
end

-- -- Picture ---------------------------------------------------------------

-- Says which colour means what.
local function write_legend(picture, write)
  local items, view = {}, picture.view
  if view.base then
    local grew, same, shrank = unpack(view:change_texts())
    if picture.is_chance then same = same .. ", or chance" end
    items = { { "url(#gone)", "gone" }, { changed(-1), shrank }, { changed(0), same }, { changed(1), grew } }
  elseif view:has_states() then
    items = { { colour("off"), "off CPU" }, { colour("ready"), "runnable" }, { colour("on"), "on CPU" } }
  end
  local x = WIDTH - MARGIN
  for _, item in ipairs(items) do
    x = x - #item[2] * CHAR - 27
    write(('<rect x="%.1f" y="12" width="11" height="11" fill="%s"/><text x="%.1f" y="21">%s</text>\n')
      :format(x, item[1], x + 15, item[2]))
  end
end

function svg.render(view, write)
  local base, compiled = view.base, nil
  local node_of = array.zeros(numbers, view.profile.slots:count() + 1)
  local base_node_of = base and array.zeros(numbers, base.profile.slots:count() + 1)
  local calls = calltree.build(view, base ~= nil, function(slot, node) node_of[slot] = node end,
			       function(slot, node) base_node_of[slot] = node end)
  if not base then calls, compiled = calls:merged() end
  local picture = { view = view, calls = calls, compiled = compiled, gone = base and calls:gone(),
		    is_chance = base and nodechance.new(view, calls, node_of, base_node_of),
		    ready = view:has_states() and calls:ready() or nil }
  local height = HEAD + (layout(picture, function() end) + 1) * ROW + MARGIN
  local title = text.html(text.clean(view.options.title or "sysprof"))
  write(('<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/' ..
	 '2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">\n<desc>sysprof for LuaJIT</desc>\n<style>%s</style>\n')
	:format(WIDTH, height, WIDTH, height, STYLE))
  if view.base then write(HATCHED) end
  write(('<rect width="%d" height="%d" fill="#fff"/>\n'):format(WIDTH, height))
  local shown = ("%s: %s"):format(text.clean(view.event.name), view:amount_text(calls.list[0].total))
  if view.base then
    local before = view:compares_amounts() and ": " .. view:amount_text(calls.list[0].other_total) or ""
    shown = ("%s, compared with %s%s"):format(shown, view:base_name(), before)
  end
  write(('<text class="title" x="%d" y="21">%s</text>\n<text x="%d" y="36">%s</text>\n'):format(MARGIN, title, MARGIN,
    text.html(shown)))
  write_legend(picture, write)
  layout(picture, function(node, depth, x, w)
    write_box(picture, write, node, x, height - MARGIN - (depth + 1) * ROW, w)
  end)
  write("</svg>\n")
end

return svg
