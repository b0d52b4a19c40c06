-- Edges of an object as a walk in Lua sees them, to compare with those of a heap snapshot.
--
-- An edge is a text: what it is, and the address of its target. Locals of coroutines are a part of the slots.

local ffi = require("ffi")

local UDATA_HEAD, CDATA_HEAD = 48, 16	-- Bytes of GCudata and GCcdata, before the address that %p shows.

local naive_heap = {}

-- Returns the address of an object in the VM, or nil for other values.
function naive_heap.address(value)
  local kind = type(value)
  if kind == "nil" or kind == "boolean" or kind == "number" then return nil end
  local address = tonumber(("%p"):format(value):match("0x(%x+)"), 16)
  if kind == "userdata" then
    if not debug.getmetatable(value) and not naive_heap.is_full(value) then return nil end
    return address - UDATA_HEAD
  end
  return kind == "cdata" and address - CDATA_HEAD or address
end

-- Tests use no light userdata.
function naive_heap.is_full() return true end

local function add(list, what, value)
  local address = naive_heap.address(value)
  if address then list[#list + 1] = ("%s > %x"):format(what, address) end
end

-- Returns a key as a text.
function naive_heap.key(key)
  local address = naive_heap.address(key)
  if address then return ("%x"):format(address) end
  return type(key) == "number" and ("%.17g"):format(key) or tostring(key)
end

local edges = {}

function edges.table(list, t)
  for key, value in next, t do
    add(list, "key", key)
    add(list, "field " .. naive_heap.key(key), value)
  end
end

edges["function"] = function(list, f)
  add(list, "environment", debug.getfenv(f))
  local is_lua = debug.getinfo(f, "S").what ~= "C"
  for i = 1, debug.getinfo(f, "u").nups do
    if is_lua then
      local id = ffi.cast("uintptr_t", ffi.cast("void *", debug.upvalueid(f, i)))
      list[#list + 1] = ("upvalue %d %s > %x"):format(i, (debug.getupvalue(f, i)), tonumber(id))
    else
      add(list, ("upvalue %d"):format(i), select(2, debug.getupvalue(f, i)))
    end
  end
end

function edges.thread(list, co)
  add(list, "environment", debug.getfenv(co))
  local level = 0
  while debug.getinfo(co, level, "l") do
    local i = 1
    while true do
      local name, value = debug.getlocal(co, level, i)
      if not name then break end
      if not name:find("^%(") then add(list, "local " .. name, value) end
      i = i + 1
    end
    level = level + 1
  end
end

function edges.userdata(list, u) add(list, "environment", debug.getfenv(u)) end

-- Returns the sorted edges of an object.
function naive_heap.edges(object)
  local list, walk = {}, edges[type(object)]
  if type(object) ~= "string" and type(object) ~= "cdata" then add(list, "metatable", debug.getmetatable(object)) end
  if type(object) == "function" or type(object) == "thread" then list = {} end	-- That of the type.
  if walk then walk(list, object) end
  table.sort(list)
  return list
end

return naive_heap
