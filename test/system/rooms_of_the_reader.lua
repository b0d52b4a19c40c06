-- The reader's modules stand in rooms. CONTRIBUTING.md has their floors in a table. A
-- module requires modules of its own room and of lower rooms only, never in a circle. No
-- module requires the library, which stands above the rooms as the commands do.
-- BASE: none, it reads the text of our sources only

local source = assert(os.getenv("SYSPROF_SOURCE"))
local root = source .. "/tools/sysprof/"
local failures = 0

local function fail(...)
  failures = failures + 1
  print("FAIL: " .. table.concat({ ... }))
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local s = file:read("*a")
  file:close()
  return s
end

-- Floor by room.
local function read_floors()
  local section = read(source .. "/CONTRIBUTING.md"):match("\n### Rooms of the reader\n(.-)\n##")
  local floors = {}
  for floor, room in (section or ""):gmatch("\n| (%d+) | `(%l+)` |") do floors[room] = tonumber(floor) end
  assert(next(floors), "CONTRIBUTING.md has no table of the reader's rooms")
  return floors
end

local floors = read_floors()

local function list(command)
  local pipe = assert(io.popen(command))
  local lines = {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  pipe:close()
  return lines
end

-- Modules of the reader that a file requires.
local function required(path)
  local found = {}
  for name in read(path):gmatch("require%s*%(?%s*[\"']sysprof%.?([%w_.]*)[\"']") do
    found[#found + 1] = name
  end
  return found
end

local edges, arrows = {}, 0
for _, path in ipairs(list("cd '" .. root .. "' && find . -name '*.lua' | LC_ALL=C sort")) do
  path = path:sub(3)
  local room, name = path:match("^(%l+)/([%w_]+)%.lua$")
  local found = required(root .. path)
  if not room then
    fail(path, ": stands in no room")
  elseif not floors[room] then
    fail(path, ": CONTRIBUTING.md has no room '", room, "'")
  else
    edges[room .. "." .. name] = found
    for _, to in ipairs(found) do
      arrows = arrows + 1
      local of = to:match("^(%l+)%.[%w_]*$")	-- The program may choose the name.
      if not of then
	fail(path, ": requires 'sysprof.", to, "', expected a name with its room")
      elseif not floors[of] then
	fail(path, ": requires 'sysprof.", to, "' of an unknown room")
      elseif of ~= room and floors[of] >= floors[room] then
	fail(path, ": requires 'sysprof.", to, "', an arrow that runs up")
      end
    end
  end
end
-- A pattern that finds nothing would find no fault.
if arrows < 100 then fail("found only ", arrows, " arrows") end

-- Circles: the search must not meet a module that it is visiting.
local state = {}
local function visit(name, trail)
  if state[name] == "done" then return end
  if state[name] then return fail("a circle: ", trail, " -> ", name) end
  state[name] = "open"
  for _, to in ipairs(edges[name] or {}) do visit(to, trail .. " -> " .. name) end
  state[name] = "done"
end
for name in pairs(edges) do visit(name, "") end

-- The library and the commands name modules by their rooms.
for _, path in ipairs(list("find '" .. source .. "/tools' -maxdepth 1 -name '*.lua'")) do
  for _, to in ipairs(required(path)) do
    if not floors[to:match("^(%l+)%.[%w_]*$")] then fail(path, ": requires 'sysprof.", to, "'") end
  end
end
os.exit(failures == 0 and 0 or 1)
