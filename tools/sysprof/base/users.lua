----------------------------------------------------------------------------
-- Users: this process's own, their names, and who may lead us.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
unsigned int geteuid(void);
struct sysprof_passwd { const char *name; };
struct sysprof_passwd *getpwuid(unsigned int);
]]

local C = ffi.C
local ROOT = 0

local users = {}

function users.own()
  return C.geteuid()
end

-- Has a user all rights of this process anyway?
function users.is_trusted(uid)
  return uid == ROOT or uid == C.geteuid()
end

-- Returns the name of a user, or the number as text.
function users.name(uid)
  local entry = C.getpwuid(uid)
  return entry ~= nil and ffi.string(entry.name) or tostring(uid)
end

return users
