-- The folders of src/profile are rooms on floors (CONTRIBUTING.md). A file includes and calls files of its own
-- room and of lower floors only. No files include or call each other in a circle. A
-- header declares its own file's functions only. LuaJIT's edits include one header.

local SOURCE, BUILD = os.getenv("SYSPROF_SOURCE"), os.getenv("SYSPROF_BUILD")


-- -- Reading ------------------------------------------------------------------

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local lines = {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  pipe:close()
  return lines
end

local function text_of(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

-- Floor of each room, and the floor of files beside the rooms, by the table of CONTRIBUTING.md.
local function read_floors()
  local section = text_of(SOURCE .. "/CONTRIBUTING.md"):match("\n### Rooms of the profiler\n(.-)\n##")
  local floors, top = {}, 0
  for floor, room in (section or ""):gmatch("\n| (%d+) | `(%l+)` |") do
    assert(not floors[room] and tonumber(floor) >= top, "CONTRIBUTING.md: room " .. room .. " stands twice or too late")
    top = tonumber(floor)
    floors[room] = top
  end
  assert(floors.base == 1 and top > 1, "CONTRIBUTING.md has no table of rooms from the ground up")
  return floors, top + 1
end

local floor_of, TOP = read_floors()

local function without_comments(text)
  return (text:gsub("/%*.-%*/", " "))
end

-- { [path] = text } of all C files below src, without comments.
local function read_sources()
  local sources = {}
  for _, path in ipairs(lines_of("cd '" .. SOURCE .. "/src' && find . -name '*.[ch]'")) do
    path = path:sub(3)
    sources[path] = without_comments(text_of(SOURCE .. "/src/" .. path))
  end
  return sources
end

-- { [object's path] = { defines = { [symbol] = true }, uses = the same } }.
local function read_objects()
  local objects = {}
  local root = BUILD .. "/luajit/sysprof/src/"
  local listing = lines_of("cd '" .. root .. "' && nm -A --format=posix profile/*/*.o lib_misc.o")
  for _, line in ipairs(listing) do
    local path, symbol, kind = line:match("^(%S+)%.o: (%S+) (%a)")
    if path and not path:match("_dyn$") then -- The same code for the shared library.
      local object = objects[path] or { defines = {}, uses = {} }
      objects[path] = object
      if kind == "U" then object.uses[symbol] = true
      elseif kind:match("[TDBRVWC]") then object.defines[symbol] = true end
    end
  end
  return objects
end

-- -- Judging ------------------------------------------------------------------

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function folder_of(path)
  return path:match("^profile/([^/]+)/")
end

-- May a file of one folder know of a file of the other one?
local function runs_down(from, to)
  local a, b = folder_of(from), folder_of(to)
  if not b then return not a end
  if a == b then return true end
  if not floor_of[b] then return false end
  return floor_of[b] < (a and floor_of[a] or TOP)
end

-- Groups of more than one node that reach each other, by Tarjan's algorithm.
local function circles(graph)
  local index, low, on_stack, stack, found, count = {}, {}, {}, {}, {}, 0
  local function visit(node)
    count = count + 1
    index[node], low[node] = count, count
    stack[#stack + 1], on_stack[node] = node, true
    for _, to in ipairs(sorted_keys(graph[node] or {})) do
      if not index[to] then
        visit(to)
        low[node] = math.min(low[node], low[to])
      elseif on_stack[to] then
        low[node] = math.min(low[node], index[to])
      end
    end
    if low[node] == index[node] then
      local group, member = {}
      repeat
        member = table.remove(stack)
        on_stack[member] = nil
        group[#group + 1] = member
      until member == node
      table.sort(group)
      if #group > 1 or (graph[node] or {})[node] then
        found[#found + 1] = table.concat(group, ", ")
      end
    end
  end
  for _, node in ipairs(sorted_keys(graph)) do
    if not index[node] then visit(node) end
  end
  return found
end

-- Iterates over the names that a header declares for other files.
local function declared(text)
  local next_one = text:gmatch("LJ_(%u+)%s+([^;{]+);")
  return function()
    for kind, declaration in next_one do
      if kind:match("^FUNC") then return declaration:match("([%w_]+)%s*%(") end
      if kind == "DATA" then return declaration:gsub("%b[]", ""):match("([%w_]+)%s*$") end
    end
  end
end

-- All offences of these files and objects, a sentence each.
local function judge(sources, objects)
  local offences = {}
  local function offence(...)
    offences[#offences + 1] = string.format(...)
  end

  local includes = {}
  for _, path in ipairs(sorted_keys(sources)) do
    includes[path] = {}
    local folder = folder_of(path)
    if path:match("^profile/") and not floor_of[folder or ""] then
      offence("%s: its folder is on no floor", path)
    end
    for to in sources[path]:gmatch('#%s*include%s*"(profile/[^"]+)"') do
      if not sources[to] then offence("%s includes %s, which does not exist", path, to) end
      if not runs_down(path, to) then offence("%s includes %s: up or sideways", path, to) end
      includes[path][to] = true
    end
  end
  for _, group in ipairs(circles(includes)) do offence("circle of includes: %s", group) end

  for _, path in ipairs(sorted_keys(sources)) do
    local object = path:match("^(profile/.*)%.h$")
    if object then
      for name in declared(sources[path]) do
        if not (objects[object] and objects[object].defines[name]) then
          offence("%s declares %s, which %s.c does not define", path, name, object)
        end
      end
    end
  end

  local owner, calls = {}, {}
  for path, object in pairs(objects) do
    for symbol in pairs(object.defines) do owner[symbol] = path end
  end
  for _, path in ipairs(sorted_keys(objects)) do
    calls[path] = {}
    for _, symbol in ipairs(sorted_keys(objects[path].uses)) do
      local to = owner[symbol]
      if to then
        calls[path][to] = true
        if not runs_down(path, to) then
          offence("%s uses %s of %s: up or sideways", path, symbol, to)
        end
      end
    end
  end
  for _, group in ipairs(circles(calls)) do offence("circle of calls: %s", group) end
  return offences
end

-- -- The test of the test ------------------------------------------------------

local function object(defines, uses)
  local o = { defines = {}, uses = {} }
  for name in defines:gmatch("%S+") do o.defines[name] = true end
  for name in uses:gmatch("%S+") do o.uses[name] = true end
  return o
end

local found = table.concat(judge({
  ["profile/base/lj_a.h"] = '#include "profile/api/lj_b.h"\nLJ_FUNC int lj_a_one(int x);',
  ["profile/api/lj_b.h"] = '#include "profile/base/lj_a.h"\nLJ_FUNC void *\nlj_a_two(\nint x);',
  ["profile/host/lj_c.c"] = '#include "profile/clock/lj_d.h"',
  ["profile/clock/lj_d.h"] = 'LJ_DATA int lj_d_table[3];',
  ["profile/attic/lj_e.c"] = "",
}, {
  ["profile/base/lj_a"] = object("lj_a_one lj_a_two", "lj_b_one"),
  ["profile/api/lj_b"] = object("lj_b_one", "lj_a_one"),
  ["profile/clock/lj_d"] = object("lj_d_table", "memcpy"),
}), "\n")
assert(found == [[
profile/attic/lj_e.c: its folder is on no floor
profile/base/lj_a.h includes profile/api/lj_b.h: up or sideways
profile/host/lj_c.c includes profile/clock/lj_d.h: up or sideways
circle of includes: profile/api/lj_b.h, profile/base/lj_a.h
profile/api/lj_b.h declares lj_a_two, which profile/api/lj_b.c does not define
profile/base/lj_a uses lj_b_one of profile/api/lj_b: up or sideways
circle of calls: profile/api/lj_b, profile/base/lj_a]], found)

-- -- The test -------------------------------------------------------------------

local objects = read_objects()
if not next(objects) then
  print("skipped: no object of the profiler can be read: nm is missing, or the build has none")
  os.exit(77)
end
local sources = read_sources()
for path in pairs(objects) do
  if not sources[path .. ".c"] then objects[path] = nil end -- Left of an older build.
end
for path in pairs(sources) do
  local o = path:match("^(profile/.*)%.c$")
  assert(not o or objects[o], path .. " has no object in the build")
end
local offences = judge(sources, objects)
for header in text_of(SOURCE .. "/etc/luajit/edits.cmake"):gmatch('#include "(profile/[^"]+)"') do
  if header ~= "profile/api/lj_vmhooks.h" then
    offences[#offences + 1] = "etc/luajit/edits.cmake includes " .. header
  end
end
for _, text in ipairs(offences) do print(text) end
print(#offences .. " offences")
os.exit(#offences == 0 and 0 or 1)
