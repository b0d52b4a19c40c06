----------------------------------------------------------------------------
-- Maps of lines: where the lines of an older version of a text stand in the newer one.
--
-- A map has steps in rising order. From the line of a step on, lines stand lower by its shift.
----------------------------------------------------------------------------

local linemap = {}
local methods = {}
local mt = { __index = methods }

-- Returns a map whose first step is at a line.
function linemap.new(line, shift) return setmetatable({ lines = { line }, shifts = { shift } }, mt) end

-- Adds a step, unless it or its new place stands before the last one.
function methods:add(line, shift)
  local n = #self.lines
  if line >= self.lines[n] and line + shift >= self.lines[n] + self.shifts[n] then
    self.lines[n + 1], self.shifts[n + 1] = line, shift
  end
end

-- Returns a function that gives the new line of an old one.
function methods:lookup()
  local lines, shifts = self.lines, self.shifts
  return function(line)
    local low, high = 1, #lines
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if lines[middle] <= line then low = middle else high = middle - 1 end
    end
    return line + shifts[low]
  end
end

return linemap
