----------------------------------------------------------------------------
-- Progress line on a terminal, for long inputs.
--
-- One line on standard error, rewritten and finally removed. The first second shows
-- nothing, and neither does a standard error that is not a terminal.
----------------------------------------------------------------------------

local ffi = require("ffi")
local system = require("sysprof.base.system")
local text = require("sysprof.base.text")

local STDERR = 2
local QUIET, STEP = 1, 0.2	-- Seconds before the first line, between two.
local MB = 1e6
local ERASE = "\r\27[K"

local progress = {}
local last		-- The object that has shown something last.
local methods = {}
local mt = { __index = methods }

local function write(s)
  io.stderr:write(s)
  io.stderr:flush()
end

-- Returns an object that shows progress, or nil without a terminal. world
-- replaces parts of the world for tests: terminal, now and write.
function progress.new(world)
  world = world or { terminal = ffi.C.isatty(STDERR) ~= 0 }
  if not world.terminal then return nil end
  local self = setmetatable({ now = world.now or system.now, write = world.write or write,
			      shown = false }, mt)
  self.due = self.now() + QUIET
  return self
end

-- total is nil if it is not known.
function methods:update(name, done, total)
  local time = self.now()
  if time < self.due then return end
  self.due, self.shown, last = time + STEP, true, self
  name = text.clean(name)
  if total and total > 0 then
    self.write(("%sreading %s: %d%% of %.0f MB"):format(ERASE, name,
      math.floor(100 * math.min(done / total, 1)), total / MB))
  else
    self.write(("%sreading %s: %.0f MB"):format(ERASE, name, done / MB))
  end
end

function methods:finish()
  if self.shown then self.write(ERASE) end
  self.shown = false
end

-- Removes the progress line, also after a failure.
function progress.erase()
  if last then last:finish() end
end

return progress
