----------------------------------------------------------------------------
-- Input window: reads a file from front to end.
--
-- The window is buf[pos] to before buf[fill]. need() widens it, skip() drops bytes from
-- its front. The buffer grows only with bytes that were read, so a wrong length in a
-- stream cannot make it large. SLACK bytes behind the window are always readable.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")

local BLOCK = 256 * 1024	-- Bytes asked for at a time.
local SLACK = 64

local byte_array = ffi.typeof("uint8_t[?]")

local input = {}
local methods = {}
local mt = { __index = methods }

ffi.cdef [[
size_t fread(void *, size_t, size_t, void *);
int ferror(void *);
]]

-- fetch(to, n) puts 1 to n bytes at a pointer and returns their number, nil at
-- the end, or nil and a message if reading failed.
local function new(fetch)
  return setmetatable({
    fetch = fetch,
    buf = byte_array(2 * BLOCK + SLACK), cap = 2 * BLOCK,
    pos = 0, fill = 0,
    base = 0,		-- Offset in the input of buf[0].
    eof = false,
    progress = nil,	-- Function that gets the number of bytes read.
    err = nil,		-- Message if reading failed; eof is set, too.
  }, mt)
end

-- read(n) returns a string of 1 to n bytes, nil at the end, or nil and a
-- message if reading failed.
function input.new(read)
  return new(function(to, n)
    local s, err = read(n)
    if not s then return nil, err end
    assert(#s <= n, "read() gave more bytes than asked for")
    ffi.copy(to, s, #s)
    return #s
  end)
end

-- A file of the io library, up to the end that it has now: who writes it may never stop. No string is made of its
-- bytes. Returns the input, and how many bytes it has, nil for a pipe.
function input.from_file(file)
  local from = file:seek()
  local size = from and file:seek("end") - from
  if from then file:seek("set", from) end
  if size == 0 then size = nil end	-- A device, too.
  local left = size or math.huge
  return new(function(to, n)
    local got = tonumber(ffi.C.fread(to, 1, math.min(n, left), file))
    left = left - got
    if got > 0 then return got end
    local reason = files.reason()
    if ffi.C.ferror(file) == 0 then return nil end
    return nil, reason
  end), size
end

function input.from_string(s)
  local at = 1
  return input.new(function(n)
    local part = s:sub(at, at + n - 1)
    at = at + #part
    return part ~= "" and part or nil
  end)
end

-- Makes room for n more bytes, by moving the window to the front of the
-- buffer or to a larger one. ffi.copy must not copy between places that overlap.
local function input_room(self, n)
  if self.fill + n <= self.cap then return end
  local old, len = self.buf, self.fill - self.pos
  if len + n > self.cap or len > self.pos then
    while len + n > self.cap do self.cap = self.cap * 2 end
    self.buf = byte_array(self.cap + SLACK)
  end
  ffi.copy(self.buf, old + self.pos, len)
  self.base = self.base + self.pos
  self.pos, self.fill = 0, len
end

-- Tries to have n bytes in the window; returns how many there are.
function methods:need(n)
  while self.fill - self.pos < n and not self.eof do
    input_room(self, BLOCK)
    local got, err = self.fetch(self.buf + self.fill, BLOCK)
    if got then
      self.fill = self.fill + got
      if self.progress then self.progress(self.base + self.fill) end
    else
      self.eof, self.err = true, err
    end
  end
  return self.fill - self.pos
end

function methods:skip(n)
  self.pos = self.pos + n
end

-- Offset in the input of the window's first byte.
function methods:offset()
  return self.base + self.pos
end

return input
