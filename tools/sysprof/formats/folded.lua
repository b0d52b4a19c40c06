----------------------------------------------------------------------------
-- Sysprof reader: folded stacks, "frame;frame;frame count", root first.
--
-- Lines are sorted by bytes, and each stack stands once. With a base to compare
-- with: "frame;frame;frame base count", what flame graph programs take for a
-- comparison.
----------------------------------------------------------------------------

local text = require("sysprof.base.text")

local folded = {}

-- Returns a function that gives the line of a stack, without its count.
local function liner()
  local escaped, parts = {}, {}
  return function(names, n)
    for i = 1, n do
      local e = names[i]
      local s = escaped[e]
      if not s then
	s = text.folded(e.text)
	escaped[e] = s
      end
      parts[i] = s
    end
    return table.concat(parts, ";", 1, n)
  end
end

-- write(s) takes the parts of the output.
function folded.render(view, write)
  local value, base, lines, line_of = {}, {}, {}, liner()
  local function add(to, names, n, v)
    local line = line_of(names, n)
    if not (value[line] or base[line]) then lines[#lines + 1] = line end
    to[line] = (to[line] or 0) + v
  end
  view:each(function(names, n, v) add(value, names, n, v) end)
  if view.base then
    view:each_of_base(function(names, n, v) add(base, names, n, v) end)
  end
  table.sort(lines)
  for _, line in ipairs(lines) do
    local before = view.base and (" %.0f"):format(base[line] or 0) or ""
    write(("%s%s %.0f\n"):format(line, before, value[line] or 0))
  end
end

return folded
