----------------------------------------------------------------------------
-- Flame graph as an SVG picture, for documents.
--
-- The title of a frame has its name and value; viewers show it as a tooltip. Frames
-- narrower than 0.6 pixels are left out. sysprof.formats.flamegraph makes an
-- interactive page.
----------------------------------------------------------------------------

local text = require("sysprof.base.text")
local calltree = require("sysprof.show.calltree")

local svg = {}

local WIDTH, MARGIN, ROW, HEAD = 880, 10, 17, 34
local NARROW, CHAR, TEXT_MIN = 0.6, 6.6, 20

-- By kind: hue, saturation, lightness, as in sysprof.formats.flamegraph_palette.
local COLOURS = {
  lua = { 96, 48, 66 }, compiled = { 206, 72, 70 }, builtin = { 172, 45, 64 },
  c = { 38, 88, 68 }, vm = { 12, 78, 72 }, marker = { 220, 9, 74 },
  unknown = { 268, 32, 76 }, waiting = { 226, 34, 80 }, all = { 220, 12, 86 },
  on = { 18, 84, 70 }, off = { 212, 52, 80 },	-- States of threads.
}

local STYLE = "text { font: 11px ui-monospace, 'DejaVu Sans Mono', monospace; " ..
  "fill: #15181c; } rect { stroke: #fff; stroke-width: 0.4; } " ..
  ".title { font: 600 15px sans-serif; }"

-- Returns a colour of a kind, varied a little by the name.
local function colour(kind, name)
  local c, h = COLOURS[kind], 0
  for i = 1, #name do h = (h * 31 + name:byte(i)) % 65536 end
  return ("hsl(%d,%d%%,%d%%)"):format((c[1] + h % 16 - 8) % 360, c[2],
				      c[3] + math.floor(h / 16) % 8 - 4)
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

-- Calls box(node, x, width) for each node that is wide enough, callers first.
-- Returns the depth of the deepest.
local function layout(root, box)
  local scale = root.total > 0 and (WIDTH - 2 * MARGIN) / root.total or 0
  local x_of, deepest = { [root] = MARGIN }, 0
  calltree.visit(root, function(node)
    local x, w = x_of[node], node.total * scale
    if not x or w < NARROW then return end
    box(node, x, w)
    deepest = math.max(deepest, node.depth)
    local used = x
    for _, c in ipairs(node.children) do
      x_of[c] = used
      used = used + c.total * scale
    end
  end)
  return deepest
end

-- Returns the coloured part of a box. In a view with states, its left part is the share on CPU.
local function rectangles(view, node, x, y, width)
  local name = node.entry and node.entry.text or "all"
  local function rectangle(from, w, kind)
    return ('<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>')
      :format(from, y, w, ROW - 1, colour(kind, name))
  end
  if not view:has_states() then
    return rectangle(x, width, node.entry and node.entry.kind or "all")
  end
  local off = node.total > 0 and node.other_total / node.total or 0
  return rectangle(x, width, off < 1 and "on" or "off") ..
	 (off > 0 and off < 1 and rectangle(x + width * (1 - off), width * off, "off") or "")
end

-- Says which colour means what.
local function write_legend(write)
  for i, item in ipairs { { "off", "off CPU" }, { "on", "on CPU" } } do
    local x = WIDTH - MARGIN - 70 * i
    write(('<rect x="%d" y="12" width="11" height="11" fill="%s"/><text x="%d" y="21">%s</text>\n')
      :format(x, colour(item[1], ""), x + 15, item[2]))
  end
end

function svg.render(view, write)
  local root = calltree.build(view)
  local height = HEAD + (layout(root, function() end) + 1) * ROW + MARGIN
  local title = text.html(text.clean(view.options.title or "sysprof"))
  write(('<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/' ..
	 '2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">\n<desc>sysprof for LuaJIT</desc>\n<style>%s</style>\n')
	:format(WIDTH, height, WIDTH, height, STYLE))
  write(('<rect width="%d" height="%d" fill="#fff"/>\n'):format(WIDTH, height))
  write(('<text class="title" x="%d" y="21">%s</text>\n'):format(MARGIN, title))
  if view:has_states() then write_legend(write) end
  layout(root, function(node, x, w)
    local name = node.entry and node.entry.text or "all"
    local y = height - MARGIN - (node.depth + 1) * ROW
    write(("<g><title>%s (%s, %.2f%%)</title>%s"):format(text.html(name),
      text.html(view:amount_text(node.total)),
      root.total > 0 and 100 * node.total / root.total or 0, rectangles(view, node, x, y, w)))
    local room = math.floor((w - 6) / CHAR)
    if w >= TEXT_MIN and room >= 3 then
      write(('<text x="%.2f" y="%d">%s</text>'):format(x + 3, y + 11,
	text.html(shortened(name, room))))
    end
    write("</g>\n")
  end)
  write("</svg>\n")
end

return svg
