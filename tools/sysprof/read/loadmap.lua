----------------------------------------------------------------------------
-- Load map: the module of an address at each point of the stream.
--
-- A module replaces those that it overlaps, so an address can be code of several modules
-- in turn. In a profile an address means one thing. So a module at a used place moves,
-- with its addresses, above all addresses of programs. The same module moves to the same
-- place again.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local ranges = require("sysprof.base.ranges")

local loadmap = {}
local methods = {}
local mt = { __index = methods }

local ADDRESS_END = 2^47	-- Above all addresses of a program.
local PLACE_BEGIN = 2^48		-- Where modules are moved to,
local PLACE_END = 2^50		-- and where they end.
local ALIGN = 2^21

-- The modules of a stream go to a profile.
function loadmap.new(profile)
  return setmetatable({
    profile = profile,
    used = ranges.new(),	-- All that were not moved.
    shifts = {}, count = 0,	-- Distance by which a module was moved, by its identity.
    moved = ranges.new(),	-- Shifts of those that are there now,
    places = ranges.new(),	-- and of all, at their new addresses.
    free = PLACE_BEGIN,
  }, mt)
end

-- Returns by how much to move a module that was not there yet.
local function new_shift(self, first, last)
  if self.used:overlapped(first, last) then
    local size = math.ceil((last - first) / ALIGN) * ALIGN
    if self.free + size <= PLACE_END then
      local shift = self.free - first
      self.free = self.free + size
      self.places:put(first + shift, last + shift, shift)
      return shift
    end
  end
  self.used:put(first, last)
  return 0
end

-- Takes a module of the stream. Returns whether there is room for it, and whether addresses that were decoded
-- before may mean something else from here on.
function methods:define(first, last, bias, buildid, path)
  local key = ("%.0f\0%.0f\0%.0f\0%d\0"):format(first, last, bias, #buildid) .. buildid .. path
  local shift, is_possible = self.shifts[key], first < last and last <= ADDRESS_END
  if not shift then
    if self.count == limits.MODULES then return false end
    shift = is_possible and new_shift(self, first, last) or 0
    self.shifts[key], self.count = shift, self.count + 1
    if not self.profile:set_module(first + shift, last + shift,
				   bias <= first and bias + shift or bias, buildid, path) then
      return false
    end
  end
  if not is_possible then return true, false end
  local changed = self.moved:remove(first, last)
  if shift ~= 0 then self.moved:put(first, last, shift) end
  return true, changed or shift ~= 0
end

-- Returns what an address of the stream is in the profile, here.
function methods:place(addr)
  local m = #self.moved.list > 0 and self.moved:find(addr)
  return m and addr + m.value or addr
end

-- Returns what an address of the profile was in the stream.
function methods:origin(addr)
  local m = addr >= PLACE_BEGIN and self.places:find(addr)
  return m and addr - m.value or addr
end

return loadmap
