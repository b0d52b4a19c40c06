----------------------------------------------------------------------------
-- Load map: the module of an address at each point of the stream.
--
-- A module replaces those that it overlaps, so an address can be code of several modules
-- in turn. In a profile an address means one thing. So a module at a used place moves,
-- with its addresses, above all addresses of programs. The same module moves to the same
-- place again.
----------------------------------------------------------------------------

local loadmap = {}
local methods = {}
local mt = { __index = methods }

local ADDRESS_MAX = 2^47	-- Above all addresses of a program.
local PLACE_MIN = 2^48		-- Where modules are moved to,
local PLACE_MAX = 2^50		-- and where they end.
local ALIGN = 2^21
local MODULES_MAX = 2^14	-- Modules that the map distinguishes.

-- The modules of a stream go to a profile.
function loadmap.new(profile)
  return setmetatable({
    profile = profile,
    ranges = {},	-- { first, last } of all that were not moved.
    shifts = {}, count = 0,	-- Distance by which a module was moved, by its identity.
    moved = {},		-- { first, last, shift } of those that are there now,
    places = {},	-- and of all, at their new addresses.
    free = PLACE_MIN,
  }, mt)
end

local function overlapped(list, first, last)
  for i = 1, #list do
    if first < list[i].last and list[i].first < last then return i end
  end
end

local function find(list, addr)
  for i = 1, #list do
    if addr >= list[i].first and addr < list[i].last then return list[i] end
  end
end

-- Returns by how much to move a module that was not there yet.
local function new_shift(self, first, last)
  if overlapped(self.ranges, first, last) then
    local size = math.ceil((last - first) / ALIGN) * ALIGN
    if self.free + size <= PLACE_MAX then
      local shift = self.free - first
      self.free = self.free + size
      self.places[#self.places + 1] = { first = first + shift, last = last + shift, shift = shift }
      return shift
    end
  end
  self.ranges[#self.ranges + 1] = { first = first, last = last }
  return 0
end

-- Takes a module of the stream. Returns true if addresses that were decoded
-- before may mean something else from here on.
function methods:define(first, last, bias, buildid, path)
  if not (first < last and last <= ADDRESS_MAX) then
    self.profile:set_module(first, last, bias, buildid, path)
    return false
  end
  local key = ("%.0f\0%.0f\0%.0f\0%d\0"):format(first, last, bias, #buildid) .. buildid .. path
  local shift = self.shifts[key]
  if not shift then
    if self.count == MODULES_MAX then return false end
    shift = new_shift(self, first, last)
    self.shifts[key], self.count = shift, self.count + 1
    self.profile:set_module(first + shift, last + shift,
			    bias <= first and bias + shift or bias, buildid, path)
  end
  local changed, moved = shift ~= 0, self.moved
  local i = overlapped(moved, first, last)
  while i do
    changed = true
    table.remove(moved, i)
    i = overlapped(moved, first, last)
  end
  if shift ~= 0 then moved[#moved + 1] = { first = first, last = last, shift = shift } end
  return changed
end

-- Returns what an address of the stream is in the profile, here.
function methods:place(addr)
  local m = #self.moved > 0 and find(self.moved, addr)
  return m and addr + m.shift or addr
end

-- Returns what an address of the profile was in the stream.
function methods:origin(addr)
  local m = addr >= PLACE_MIN and find(self.places, addr)
  return m and addr - m.shift or addr
end

return loadmap
