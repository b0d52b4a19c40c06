----------------------------------------------------------------------------
-- Sysprof reader: folded stacks, "frame;frame;frame count", root first.
--
-- Lines are sorted by bytes, and each stack stands once.
----------------------------------------------------------------------------

local text = require("sysprof.text")

local folded = {}

-- write(s) takes the parts of the output.
function folded.render(view, write)
  local value, lines, escaped, parts = {}, {}, {}, {}
  view:each(function(names, n, v)
    for i = 1, n do
      local e = names[i]
      local s = escaped[e]
      if not s then
	s = text.folded(e.text)
	escaped[e] = s
      end
      parts[i] = s
    end
    local line = table.concat(parts, ";", 1, n)
    if not value[line] then lines[#lines + 1] = line end
    value[line] = (value[line] or 0) + v
  end)
  table.sort(lines)
  for _, line in ipairs(lines) do
    write(("%s %.0f\n"):format(line, value[line]))
  end
end

return folded
