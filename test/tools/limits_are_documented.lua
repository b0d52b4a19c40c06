-- doc/limits.md is what etc/limits writes: limits of the reader, and of the profiler. No module of the reader has a limit of its
-- own. In the profiler's files that read what comes from outside, each largest number is a documented limit.
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local t = require("tools_test")
local limits = require("sysprof.base.limits")

local page = select(2, t.shell(("LUA_PATH='%s/tools/?.lua' '%s' '%s/etc/limits.lua' '%s'")
			       :format(t.source, t.luajit, t.source, t.source)))
t.equal(t.read_file(t.source .. "/doc/limits.md"), page, "doc/limits.md is up to date: etc/limits writes it")

-- -- The reader ------------------------------------------------------------

local names = {}
for _, row in ipairs(limits.ROWS) do
  if type(row) == "table" then names[row[1]] = true end
end

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

-- What reads files, packets and lists of others.
local OUTSIDE = { "libunwind/", "profile/live/", "profile/control/", "profile/output/", "profile/base/lj_elf",
		  "profile/base/lj_osloaded.h", "profile/host/lj_eh", "profile/host/lj_rowtab", "profile/symbols/lj_elf" }

-- Sizes and rates of what the profiler makes itself.
local OWN = { WAKE_POLLS_MAX = true, FOLDER_MAX = true, PROBLEM_MAX = true, REFUSAL_MAX = true, STAT_MAX = true,
	      HEAD_MAX = true, OWN_MAX = true, SYM_RUN_MAX = true, ENTRY_MAX = true }

local rows = select(2, page:gsub("\n| [^\n]* | `[%u%d_]+` in `", ""))
t.ok(rows > 40, rows .. " limits of the profiler")

for path in io.popen(("find '%s/src' -name '*.[ch]'"):format(t.source)):lines() do
  local name = path:match("/src/(.*)$")
  local source, is_outside = t.read_file(path), false
  for _, place in ipairs(OUTSIDE) do is_outside = is_outside or name:sub(1, #place) == place end
  for limit in source:gmatch("/%* Limit of [^/]*%*/\n#define ([%u%d_]+)") do
    t.ok(page:find(("`%s` in `%s`"):format(limit, name), 1, true), "doc/limits.md lacks " .. limit .. " in " .. name)
    t.ok(select(2, source:gsub("%f[%w_]" .. limit .. "%f[^%w_]", "")) > 1 or name:find("%.h$"), "nobody uses " .. limit)
  end
  for limit, value in source:gmatch("\n#define ([%u%d_]+_MAX) +([^\n]+)") do
    local is_number = value:find("^%(?%d+u? *[<*/]") or value:find("^%d+$")
    local is_known = not is_outside or not is_number or OWN[limit] or page:find(("`%s` in `%s`"):format(limit, name), 1, true)
    t.ok(is_known, name .. " has a limit without a comment 'Limit of ...': " .. limit)
  end
end

t.finish()
