----------------------------------------------------------------------------
-- Columns of time: the samples of each slot by column, for a page that shows a part of the time.
--
-- Of sums of real time only. A cell has the samples of a slot in a column. With more cells than limits.CELLS,
-- the columns get twice as long. A cell takes 32 bytes, and the index that finds it 8 to 16.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local events = require("sysprof.model.events")
local limits = require("sysprof.base.limits")
local pairmap = require("sysprof.base.pairmap")

local CELL = pairmap.kind [[
  double a;		/* Number of the slot. */
  int32_t b;		/* And of the column, from 0. */
  double samples, weight;
]]

local COLUMN_US = 20000	-- Length of a column at first.
local COLUMNS = 2^20	-- More are made longer.

local columns = {}
local methods = {}
local mt = { __index = methods }

local function count(cells, slot, column, samples, weight)
  local i = cells:put(slot, column)	-- It may move the list.
  local cell = cells.list[i]
  cell.samples, cell.weight = cell.samples + samples, cell.weight + weight
end

-- Makes the columns twice as long. If one column alone has too many cells, no part of the time can be shown.
local function widen(self)
  local old, cells, last = self.cells, pairmap.new(CELL), 0
  for i = 1, old.count do
    local cell = old.list[i]
    local column = math.floor(cell.b / 2)
    count(cells, cell.a, column, cell.samples, cell.weight)
    last = math.max(last, column)
  end
  array.free(old.list)
  array.free(old.index)
  local is_full = last == 0 and cells.count > limits.CELLS
  self.cells, self.step_us = not is_full and cells or nil, 2 * self.step_us
end

-- Counts samples in the column of a time.
local function add(self, slot, now, samples, weight)
  while self.cells and (now >= COLUMNS * self.step_us or self.cells.count > limits.CELLS) do widen(self) end
  if self.cells then count(self.cells, slot, math.floor(now / self.step_us), samples, weight) end
end

-- Adds the cells of another profile. slot_of: a slot here by one there, 0 if it is left out.
function methods:merge(other, slot_of)
  if not other.cells then self.cells = nil end
  while self.cells and self.step_us < other.step_us do widen(self) end
  if not self.cells then return end
  for i = 1, other.cells.count do
    local cell = other.cells.list[i]
    local slot = slot_of[cell.a]
    if slot ~= 0 then add(self, slot, cell.b * other.step_us, cell.samples, cell.weight) end
  end
  array.free(other.cells.list)
  array.free(other.cells.index)
  other.cells = nil
end

-- Makes a profile count its samples by columns, by its options, see sysprof.model.profile. profile.columns has step_us,
-- the length of a column, and cells, nil where they have no room.
function columns.attach(profile, options)
  if not options.activity then return end
  local add_slot, is_part = profile.add, {}
  local own = setmetatable({ step_us = COLUMN_US, cells = pairmap.new(CELL) }, mt)
  profile.columns = own
  profile.add = function(now, weight, state, lua, host, event)
    local ok, slot = add_slot(now, weight, state, lua, host, event)
    if slot and own.cells and profile.session.meta.wall then
      local its = profile.slots:event(slot)
      if is_part[its] == nil then is_part[its] = events.is_part(its) end
      if is_part[its] then add(own, slot, now, 1, weight) end
    end
    return ok, slot
  end
end

return columns
