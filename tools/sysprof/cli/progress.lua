----------------------------------------------------------------------------
-- Progress line on a terminal, for long inputs.
--
-- One line on standard error, rewritten and finally removed. The first second shows
-- nothing, and neither does a standard error that is not a terminal.
----------------------------------------------------------------------------

local ffi = require("ffi")
local text = require("sysprof.base.text")

ffi.cdef [[
int isatty(int);
int clock_gettime(int, void *);
]]

local STDERR, CLOCK_MONOTONIC = 2, 1
local QUIET, STEP = 1, 0.2	-- Seconds before the first line, between two.
local MB = 1e6
local ERASE = "\r\27[K"

local progress = {}
local last		-- The object that has shown something last.
local methods = {}
local mt = { __index = methods }

local function now()
  local t = ffi.new("int64_t[2]")
  ffi.C.clock_gettime(CLOCK_MONOTONIC, t)
  return tonumber(t[0]) + tonumber(t[1]) / 1e9
end

local function write(s)
  io.stderr:write(s)
  io.stderr:flush()
end

-- Returns an object that shows progress, or nil without a terminal. system
-- replaces parts of the world for tests: terminal, now and write.
function progress.new(system)
  system = system or { terminal = ffi.C.isatty(STDERR) ~= 0 }
  if not system.terminal then return nil end
  local self = setmetatable({ now = system.now or now, write = system.write or write,
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
