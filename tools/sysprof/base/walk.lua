----------------------------------------------------------------------------
-- Walks along a path that other users may change at any time.
--
-- Who may make names in a folder, such as /tmp, can let a link lead to another place, and can exchange names. So each
-- step is a descriptor, and a link must be of this user or of root: a folder on the path as well as its end.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local system = require("sysprof.base.system")
local users = require("sysprof.base.users")

local C = ffi.C
local O_PLACE = system.O_PATH + system.O_CLOEXEC
local O_STEP, O_FOLDER = O_PLACE + system.O_NOFOLLOW, O_PLACE + system.O_DIRECTORY
local LINKS = 40	-- As the kernel follows.

local walk = {}
local methods = {}
local mt = { __index = methods }

-- Enters a folder. Owns fd.
local function enter(self, fd)
  system.close(self.folder)
  self.folder = fd
end

-- Follows the link at the place. shown: its path. Returns where it leads, or nil and a reason; or nil if the kernel
-- followed it: the links of procfs are no texts, and lead to what a process has open.
local function follow(self, shown, is_last, is_forced)
  local st, link = self.st, self.place
  if not is_forced and not users.is_trusted(st.uid) then
    return nil, ("%s of user %s; expected one of your own, or no %s")
		:format(is_last and "it is a link" or ("folder %s is a link"):format(shown), users.name(st.uid),
			is_last and "file" or "link")
  end
  local proc, target, why = files.stat("/proc"), files.link("", link), files.reason()
  self.place = -1
  if proc and st.device == proc.device then
    target, self.place, self.is_open_file = nil, C.openat(self.folder, self.name, O_PLACE), is_last
    self.st, why = files.stat_of(self.place), files.reason()
  end
  system.close(link)
  return target, not target and not self.st and why or nil
end

-- Takes one step. Returns the rest of the path, or nil at its end; and why there is no way.
local function step(self, rest, is_forced)
  local name, tail = rest:match("^([^/]*)(.*)$")
  local is_last, shown = tail == "", self.shown .. name
  self.name = name == "" and "." or name
  self.place = C.openat(self.folder, self.name, O_STEP)
  self.st = self.place >= 0 and files.stat_of(self.place) or nil
  local reason = files.reason()
  if self.st and self.st.kind == "link" then
    self.is_linked, self.links = self.is_linked or is_last, self.links + 1
    if self.links > LINKS then return nil, "too many links" end
    local target, why = follow(self, shown, is_last, is_forced)
    if target or why then return target and target .. tail, why end
  end
  if is_last then return nil end
  if self.place < 0 and ffi.errno() == system.EACCES then return nil, ("folder %s: %s"):format(shown, reason) end
  if not self.st or self.st.kind ~= "folder" then
    return nil, ("there is no folder %s"):format((shown .. tail):match("^(.*)/"))
  end
  enter(self, self.place)
  self.place, self.shown = -1, shown .. "/"
  return (tail:gsub("^/+", ""))
end

-- Walks to a file, which may be missing. is_forced: links of others lead us, too. Returns an object: folder and name, a
-- descriptor and the name in it; place, the descriptor of the file, which is only a place, or -1; st, its facts, if it
-- is there; is_linked, whether a link led to it; is_open_file, whether that was one of procfs to what a process has
-- open. Or nil and the reason.
function walk.to(path, is_forced)
  local self = setmetatable({ folder = -1, place = -1, shown = "", links = 0, is_linked = false,
			      is_open_file = false }, mt)
  local rest, why = path, nil
  enter(self, C.open(".", O_FOLDER))
  while rest do
    if rest:sub(1, 1) == "/" then
      enter(self, C.open("/", O_FOLDER))
      rest, self.shown = rest:gsub("^/+", ""), "/"
    end
    if self.folder < 0 then
      why = files.reason()
      break
    end
    rest, why = step(self, rest, is_forced)
  end
  if not why then return self end
  self:close()
  return nil, why
end

-- Returns the path of the folder, by which the walk came.
function methods:folder_name()
  return self.shown == "" and "." or self.shown:match("^(.+)/$") or "/"
end

function methods:close()
  system.close(self.place)
  system.close(self.folder)
end

return walk
