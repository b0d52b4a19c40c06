----------------------------------------------------------------------------
-- Errors of the amounts of rows, as texts: 95 % intervals, rows that do not differ, and too few samples.
----------------------------------------------------------------------------

local spread = require("sysprof.model.spread")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local LOPSIDED = 0.25	-- Difference of the sides of an interval, in halves of it: above, both ends are shown.
local FEW = 0.25	-- Half an interval, in amounts: above, there are few samples.
local ENOUGH = 0.1	-- What more samples are to reach.
local SHORTEST_MS = 1	-- Interval that any system reaches.

local errors = {}
local methods = {}
local mt = { __index = methods }

-- Returns the spread of a view's amounts, of sysprof.model.spread; nil if the profile has not noted it.
function errors.spread(view)
  local filter = view.filter
  return spread.of(view.profile, view.event, view.weight, filter and function(thread)
    return filter:takes_thread(thread)
  end)
end

-- Returns the errors of a view's rows; nil if the profile has not noted them, or if they are none: each thread's ticks
-- add up to its CPU time.
function errors.of(view)
  if view.options.by == "thread" and units.of(view.event.unit) ~= units.BYTES then return nil end
  local its = errors.spread(view)
  return its and setmetatable({ view = view, spread = its, known = setmetatable({}, { __mode = "k" }) }, mt)
end

local function row_of(self, row)
  local known = self.known[row]
  if not known then
    known = self.spread:row(row.slots)
    known.low, known.high = self.spread:interval(known, row.self)
    self.known[row] = known
  end
  return known
end

-- Returns the ends of the interval of a row's self.
function methods:interval(row)
  local its = row_of(self, row)
  return its.low, its.high
end

-- Returns an interval as a text: half of it, or both ends if they are not alike; "" if it is exact. value_text(v): of
-- an end.
local function interval_text(low, value, high, value_text)
  local half = (high - low) / 2
  local shown = value_text(half)
  if shown == value_text(0) then return "" end
  if math.abs(high + low - 2 * value) <= LOPSIDED * half then return shown end
  return ("%s .. %s"):format(value_text(low), value_text(high))
end

-- Returns what stands beside a row's self. value_text(v): of an end, or nil for that of the view.
function methods:text(row, value_text)
  if row.self == 0 then return "" end
  local low, high = self:interval(row)
  return interval_text(low, row.self, high, value_text or function(v) return self.view:value_text(v) end)
end

-- Returns what stands beside a row's share of a whole. slots: of the whole. share_text(v): of an end.
function methods:share_text(row, slots, sum, share_text)
  if row.self == 0 then return "" end
  self.whole = self.whole or self.spread:row(slots)
  local low, high = self.spread:share(row_of(self, row), row.self, self.whole, sum)
  return interval_text(low, row.self / sum, high, share_text)
end

-- Returns what stands beside the change of a row's self since a row of the base, and whether chance alone can make it.
-- signed(v): text of a change. The ends are Newcombe's ("Interval estimation for the difference between independent
-- proportions", 1998).
function methods:change(row, base, base_row, signed)
  local low, high = self:interval(row)
  local base_low, base_high = base:interval(base_row)
  local change = row.self - base_row.self
  local least = change - math.sqrt((row.self - low) ^ 2 + (base_high - base_row.self) ^ 2)
  local most = change + math.sqrt((high - row.self) ^ 2 + (base_row.self - base_low) ^ 2)
  local half = (most - least) / 2
  if math.abs(most + least - 2 * change) <= LOPSIDED * half then
    return interval_text(least, change, most, function(v) return self.view:value_text(v) end), least < 0 and most > 0
  end
  return interval_text(least, change, most, signed), least < 0 and most > 0
end

-- Whether chance alone can make the difference of the selves of two rows.
function methods:is_same(row, above)
  return self.spread:is_same(row_of(self, row), row.self, row_of(self, above), above.self)
end

-- Returns by which option a run takes so many times more samples, or nil.
local function remedy(event, times)
  local period, unit = event.periods[1], units.of(event.unit)
  if event.of or #event.periods ~= 1 then return nil end
  if unit == units.BYTES then
    local bytes = 2 ^ math.max(math.floor(math.log(period / times) / math.log(2)), 0)
    return ("-e %s/period=%.0f/"):format(event.name, bytes)
  elseif unit.is_cpu and period / 1e6 > SHORTEST_MS then
    return ("--interval=%.1g"):format(math.max(period / 1e6 / times, SHORTEST_MS))
  end
end

-- Says how to get more samples, if there are too few for the row; or nil.
function methods:few_text(row)
  local low, high = self:interval(row)
  local half, view = (high - low) / 2, self.view
  if half <= FEW * row.self then return nil end
  local samples = 0
  for _, slot in ipairs(row.slots) do samples = samples + view.profile.slots:samples(slot) end
  local how, amount = remedy(view.event, (half / row.self / ENOUGH) ^ 2), text.plural(samples, "sample")
  if view.unit ~= units.SAMPLES then amount = ("%s: %s"):format(amount, view:amount_text(row.self)) end
  return ("%s +- %s; %sa longer run tells more"):format(amount, view:value_text(half), how and how .. " or " or "")
end

return errors
