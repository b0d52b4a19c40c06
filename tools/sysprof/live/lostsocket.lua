----------------------------------------------------------------------------
-- Sockets of live programs whose names in /tmp are gone.
--
-- The kernel shows the name that a socket had when it was made: the program renames it later.
----------------------------------------------------------------------------

local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")

local LISTENS = 0x10000		-- Its flag __SO_ACCEPTCON.
local FIRST_NAME = "^/proc/thread%-self/fd/%d+/%.(%d+)$"

local lostsocket = {}

-- Returns the numbers of the sockets that processes with a number, in their own namespace, have made.
local function made_by(folder, own_pid)
  local file = io.open(folder .. "/net/unix", "rb")
  local text = file and file:read(limits.PROC_MAPS) or ""
  if file then file:close() end
  local list = {}
  for line in text:gmatch("[^\n]+") do
    local flags, inode, path = line:match("^%x+: %x+ %x+ (%x+) %x+ %x+ +(%d+) (.*)$")
    if path and tonumber(path:match(FIRST_NAME)) == own_pid and tonumber(flags, 16) == LISTENS then
      list[#list + 1] = inode
    end
  end
  return list
end

-- facts: on a process that no socket's name leads to. Does it listen nevertheless?
function lostsocket.has(facts)
  local made = made_by(facts.folder, facts.own_pid)
  if #made == 0 then return false end
  for _, path in ipairs(files.matching(facts.folder .. "/fd/*")) do
    local st = files.stat(path)
    for _, inode in ipairs(st and st.kind == "other" and made or {}) do
      if st.id:match(":(%d+)$") == inode then return true end
    end
  end
  return false
end

return lostsocket
