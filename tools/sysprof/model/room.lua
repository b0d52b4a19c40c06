----------------------------------------------------------------------------
-- Room of profiles that are read together: how much of each kind they may still take.
--
-- The limits are those of sysprof.base.limits. Each profile has an account, and gives back what it has taken when it is
-- added to another one. A program that runs may send any recording, and somebody waits for the view: it gets less room.
----------------------------------------------------------------------------

local bytes = require("sysprof.base.bytes")
local limits = require("sysprof.base.limits")

local room = {}
local methods = {}
local mt = { __index = methods }

local KINDS = { "THREADS", "LABEL_SETS", "LANES", "SAMPLES", "STACKS", "ALL_MODULES", "DEFINITIONS", "THINGS",
		"SINGLES", "TRACKS" }

local LIVE = { STACKS = "LIVE_STACKS", DEFINITIONS = "LIVE_DEFINITIONS" }

-- Returns options of sysprof.model.profile for profiles that are read together: they share their room. live, an option:
-- they are recordings of programs that run.
function room.shared(options)
  local own = {}
  for key, value in pairs(options or {}) do own[key] = value end
  if not own.room then
    own.room = {}
    bytes.forget_strings()
    for _, kind in ipairs(KINDS) do own.room[kind] = limits[own.live and LIVE[kind] or kind] end
  end
  return own
end

-- Returns an account of a profile by its options.
function room.account(options)
  local taken = {}
  for _, kind in ipairs(KINDS) do taken[kind] = 0 end
  return setmetatable({ left = room.shared(options).room, taken = taken, is_live = options and options.live,
			full = nil }, mt)	-- Kind of the last limit that was reached, see refusal().
end

-- Takes n of a kind, one if missing. Returns whether there was room for them.
function methods:take(kind, n)
  n = n or 1
  local left = self.left[kind] - n
  if left < 0 then
    self.full, self.left.was_full = kind, true
    return false
  end
  self.left[kind], self.taken[kind] = left, self.taken[kind] + n
  return true
end

-- Gives one of a kind back.
function methods:give_back(kind)
  self.left[kind], self.taken[kind] = self.left[kind] + 1, self.taken[kind] - 1
end

-- Gives all back.
function methods:close()
  for _, kind in ipairs(KINDS) do
    self.left[kind], self.taken[kind] = self.left[kind] + self.taken[kind], 0
  end
end

-- Returns the sentence of a limit.
function methods:sentence(kind)
  return limits.sentence(self.is_live and LIVE[kind] or kind)
end

-- Whether a limit was reached, of this profile or of one that was read with it.
function methods:was_full()
  return self.left.was_full == true
end

-- Returns a sentence on a limit that was reached since the last call, or nil.
function methods:refusal()
  local kind = self.full
  self.full = nil
  return kind and self:sentence(kind)
end

return room
