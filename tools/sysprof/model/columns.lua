----------------------------------------------------------------------------
-- Columns of time: the samples of each slot by column, for a page that shows a part of the time.
--
-- Of sums of real time only. A cell, 16 bytes, has time of a slot in a column. A wait has its part in each column that
-- it lies in, a sum of waits and CPU time stand where their samples end. Where there are more cells than limits.CELLS,
-- or LIVE_CELLS, those of a slot and column become one, and columns get twice as long until half of the cells are free.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local countsort = require("sysprof.base.countsort")
local events = require("sysprof.model.events")
local limits = require("sysprof.base.limits")
local threadstates = require("sysprof.model.threadstates")

local cells = array.kind("struct { double weight; int32_t slot, column; }")

local COLUMN_US = 20000	-- Length of a column at first.
local COLUMNS = 2^20	-- More are made longer.
local FIRST = 1024	-- Cells that there is room for at first.
local SPAN = 1024	-- A wait lies in at most so many columns; in half as many each time that waits have made
local SPAN_CELLS = 2^20	-- so many more cells. So a few bytes of a stream take little time.

local columns = {}
local methods = {}
local mt = { __index = methods }

-- Makes cells of the same slot and column one. They are in order.
local function unite(self)
  local list, last = self.list, 0
  for i = 1, self.n - 1 do
    local cell, into = list[i], list[last]
    if cell.slot == into.slot and cell.column == into.column then
      into.weight = into.weight + cell.weight
    else
      last = last + 1
      into = list[last]
      into.weight, into.slot, into.column = cell.weight, cell.slot, cell.column
    end
  end
  self.n = math.min(self.n, last + 1)
end

-- Makes the columns twice as long.
local function widen(self)
  for i = 0, self.n - 1 do self.list[i].column = math.floor(self.list[i].column / 2) end
  self.step_us, self.last = self.step_us * 2, math.floor(self.last / 2)
end

local function order(self)
  local list, slot = self.list, 0
  for i = 0, self.n - 1 do slot = math.max(slot, list[i].slot) end
  local by_column = countsort(nil, self.n, self.last, function(i) return list[i].column end)
  local by_slot = countsort(by_column, self.n, slot, function(i) return list[i].slot end)
  local sorted = array.resize(cells, nil, self.cap)
  for i = 0, self.n - 1 do
    local from, to = list[by_slot[i]], sorted[i]
    to.weight, to.slot, to.column = from.weight, from.slot, from.column
  end
  array.free(by_column)
  array.free(by_slot)
  array.free(list)
  self.list = sorted
end

-- Makes room for more cells. If one column alone has too many, no part of the time can be shown.
local function make_room(self)
  if self.n < self.most then
    self.cap = math.min(math.max(FIRST, self.cap * 2), self.most)
    self.list = array.resize(cells, self.list, self.cap)
    return
  end
  order(self)
  unite(self)
  while self.n > self.most / 2 and self.last > 0 do
    widen(self)
    unite(self)
  end
  if self.n > self.most / 2 then self.is_full, self.list, self.n = true, nil, 0 end
end

-- Adds weight of a slot at a time.
local function add(self, slot, now, weight)
  while now >= COLUMNS * self.step_us do widen(self) end
  if self.n == self.cap then make_room(self) end
  if self.is_full then return end
  local cell, column = self.list[self.n], math.floor(now / self.step_us)
  cell.weight, cell.slot, cell.column = weight, slot, column
  self.n, self.last = self.n + 1, math.max(self.last, column)
end

-- Adds nanoseconds of a slot that end at a time: the first column gets what the others have no room for.
local function add_span(self, slot, now, ns)
  local end_ns = now * 1000
  local begin_ns = math.max(end_ns - ns, 0)
  if self.spanned >= SPAN_CELLS and self.span > 2 then self.spanned, self.span = 0, self.span / 2 end
  while end_ns - begin_ns > (self.span - 1) * self.step_us * 1000 do widen(self) end
  local step_ns = self.step_us * 1000
  local first, last = math.floor(begin_ns / step_ns), math.ceil(end_ns / step_ns) - 1
  for column = last, first + 1, -1 do
    local part = math.min(end_ns, (column + 1) * step_ns) - column * step_ns
    add(self, slot, column * step_ns / 1000, part)
    ns = ns - part
  end
  add(self, slot, first * step_ns / 1000, ns)
  self.spanned = self.spanned + last - first
end

-- Adds the cells of another profile, which loses them. slot_of: a slot here by one there, 0 if it is left out.
function methods:merge(other, slot_of)
  self.is_full = self.is_full or other.is_full
  if self.is_full then return end
  while self.step_us < other.step_us do widen(self) end
  for i = 0, other.n - 1 do
    local cell = other.list[i]
    local slot = slot_of[cell.slot]
    if slot ~= 0 and not self.is_full then
      add(self, slot, cell.column * other.step_us, cell.weight)
    end
  end
  if other.list then array.free(other.list) end
  other.list, other.n, other.cap = nil, 0, 0
end

-- Makes a profile count its samples by columns, by its options, see sysprof.model.profile. profile.columns has n cells
-- in list[0..n-1], the number of the last column, from 0, and step_us, the length of one; is_full: there is no room.
function columns.attach(profile, options)
  if not options.activity then return end
  local add_slot, is_part = profile.add, {}
  local own = setmetatable({ step_us = COLUMN_US, list = nil, n = 0, cap = 0, last = 0, is_full = false,
			     span = SPAN, spanned = 0,	-- See SPAN.
			     most = profile.room.is_live and limits.LIVE_CELLS or limits.CELLS }, mt)
  profile.columns = own
  profile.add = function(now, weight, state, lua, host, event)
    local ok, slot = add_slot(now, weight, state, lua, host, event)
    if slot and not own.is_full and profile.session.meta.wall then
      local its = profile.slots:event(slot)
      if is_part[its] == nil then is_part[its] = events.is_part(its) end
      if is_part[its] and weight > 0 then
	local add_its = threadstates.is_span(profile, lua, its.unit) and add_span or add
	add_its(own, slot, now, weight)
      end
    end
    return ok, slot
  end
end

return columns
