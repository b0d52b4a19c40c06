----------------------------------------------------------------------------
-- Which LuaJIT a process or a file has: one with sysprof, another one, or none.
--
-- The mapped files tell: LuaJIT with sysprof holds the name of its variable.
----------------------------------------------------------------------------

local aside = require("sysprof.live.aside")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local lostsocket = require("sysprof.live.lostsocket")
local regular = require("sysprof.base.regular")
local text = require("sysprof.base.text")

local OURS, ANY = "LUAJIT_SYSPROF", "LuaJIT 2."
local BLOCK = 2^20

local library = {}
local known = {}		-- "ours", "other" or "none", by device and inode.

-- Returns which LuaJIT a file holds, "ours", "other" or "none"; nil if it cannot be read.
function library.of_file(path)
  local file = regular.open(path)
  if not file then return nil end
  local found, before, left, at = "none", "", limits.LIBRARY_BYTES, 0
  while left > 0 do
    local data = file:next_data(at)
    if not data then break end
    if data > at then before = "" end
    local block = file:read(data, BLOCK)
    if block == "" then break end
    local s = before .. block
    if s:find(OURS, 1, true) then
      found = "ours"
      break
    end
    if s:find(ANY, 1, true) then found = "other" end
    before, left, at = s:sub(-#OURS), left - #block, data + #block
  end
  file:close()
  return found
end

-- Returns which LuaJIT is in a file that a process has mapped. Only root may open what was deleted since.
local function of_mapping(folder, range, path, is_program)
  return library.of_file(folder .. "/map_files/" .. range) or is_program and library.of_file(folder .. "/exe") or
	 library.of_file(folder .. "/root" .. path)
end

-- Returns "ours", "other" or "none", as far as the mapped files tell; nil if this user may not look. A process chooses
-- them, so this may take for ever.
local function look(folder)
  local file = io.open(folder .. "/maps", "rb")
  local maps = file and file:read(limits.PROC_MAPS)
  if file then file:close() end
  if not file then return nil end
  local program = files.link(folder .. "/exe")
  local result = "none"
  for line in (maps or ""):gmatch("[^\n]+") do
    local range, id, path = line:match("^(%x+%-%x+) ..x. %x+ (%x+:%x+ %d+) +(/.*)$")
    local is_program = path ~= nil and path == program
    if is_program or path and text.base_name(path):lower():find("lua", 1, true) then
      known[id] = known[id] or of_mapping(folder, range, path, is_program) or "none"
      if known[id] == "ours" then return "ours" end
      if known[id] == "other" then result = "other" end
    end
  end
  return result
end

-- Returns a list of which LuaJIT each process of a list of facts has: "ours", "other" or "none"; "lost" if it listens
-- at a socket without a name; "late" if its files do not answer; "hidden" if this user may not look.
function library.of_all(list)
  local words = {}
  aside.each(list, function(facts)
    local has = look(facts.folder)
    return (has == "ours" or not has) and lostsocket.has(facts) and "lost" or has or "hidden"
  end, function(_, word)
    words[#words + 1] = word or "late"
  end, limits.LIBRARIES_SECONDS)
  return words
end

return library
