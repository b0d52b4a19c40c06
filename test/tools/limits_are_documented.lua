-- doc/limits.md has the limits of the code: those of the reader as etc/limits writes them, and those of the profiler by their macros.
-- No module of the reader has a limit of its own.
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local t = require("tools_test")
local limits = require("sysprof.base.limits")

local document = t.read_file(t.source .. "/doc/limits.md")
local of_reader, of_profiler = document:match("^(.-)\n# Limits of the profiler\n(.*)$")

-- -- The reader ------------------------------------------------------------

local names = {}
for _, row in ipairs(limits.ROWS) do
  if type(row) == "table" then names[row[1]] = true end
end
t.equal(of_reader .. "\n", limits.document(), "limits of the reader: etc/limits writes them")

local used = {}
for path in io.popen(("find '%s/tools' -name '*.lua'"):format(t.source)):lines() do
  local name = path:match("/tools/(.*)$")
  local source = t.read_file(path)
  for limit in source:gmatch("limits%.([A-Z_]+)") do
    t.ok(names[limit] or limit == "ROWS", name .. ": no limit " .. limit)
    used[limit] = true
  end
  for limit in source:gmatch('%("([A-Z_]+)"') do used[limit] = true end
  for limit in source:gmatch('"([A-Z_]+)"') do
    if name:find("room.lua$") or name:find("sessions.lua$") then used[limit] = true end
  end
  if name ~= "sysprof/base/limits.lua" and name ~= "sysprof/base/grammar.lua" then
    for line in source:gmatch("[^\n]+") do
      t.ok(not line:find("^local [A-Z_, ]*_MAX[A-Z_, ]* = [%d(]"), name .. " has a limit of its own: " .. line)
    end
  end
end
for name in pairs(names) do t.ok(used[name], "nobody uses the limit " .. name) end

-- -- The profiler ----------------------------------------------------------

-- Returns the value of a macro: a number, or a number shifted.
local function macro(path, name)
  local text = t.read_file(t.source .. "/src/" .. path):match("\n#define " .. name .. " +([^\n]+)") or ""
  local number, shift = text:match("^%(?(%d+)u? *<?<? *(%d*)")
  local factor = text:match("^%(?%d+ *%* *(%d+)")
  return number and tonumber(number) * 2 ^ (tonumber(shift) or 0) * (tonumber(factor) or 1)
end

local rows = 0
for number, name, path in of_profiler:gmatch("\n| [^|]+ | (%d+)[^|]* | `([%u_]+)` in `([^`]+)` |") do
  rows = rows + 1
  t.equal(macro(path, name), tonumber(number), name .. " in " .. path)
end
t.ok(rows > 20, rows .. " limits of the profiler")

t.finish()
