----------------------------------------------------------------------------
-- Growing arrays outside of the garbage collector.
--
-- The collector would let memory grow to twice as much. realloc() moves large arrays by
-- their pages, and an element that was never written takes no memory. So an array may
-- double whenever it is full. An array is an FFI pointer that frees its elements when it is
-- collected.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
]]

local C = ffi.C

local array = {}

local function owned(kind, p)
  if p == nil then error("not enough memory", 0) end
  return ffi.gc(ffi.cast(kind.pointer, p), C.free)
end

-- Returns the kind of arrays with elements of a C type.
function array.kind(ctype)
  local element = ffi.typeof(ctype)
  return { pointer = ffi.typeof("$ *", element), size = ffi.sizeof(element) }
end

-- Returns an array of n elements in place of an old one, or of nil. It begins with the
-- elements of the old one; others have any value.
function array.resize(kind, old, n)
  local p = C.realloc(old, n * kind.size)
  if old and p ~= nil then ffi.gc(old, nil) end
  return owned(kind, p)
end

-- Returns an array of n elements that are 0.
function array.zeros(kind, n)
  return owned(kind, C.calloc(n, kind.size))
end

-- Returns an array of n elements in place of an old one of have elements, or of nil. Elements
-- behind the old ones are 0.
function array.widen(kind, old, have, n)
  local list = array.resize(kind, old, n)
  ffi.fill(list + have, (n - have) * kind.size)
  return list
end

-- Frees an array now.
function array.free(list)
  C.free(ffi.gc(list, nil))
end

return array
