----------------------------------------------------------------------------
-- doc/limits.md: limits of the reader, and of the profiler. etc/limits runs this with the source folder.
--
-- A limit of the profiler is a macro with a comment in front of it:
--   /* Limit of WHAT: WHAT HAPPENS */    or    /* Limit of WHAT, in UNIT: WHAT HAPPENS */
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")

local SOURCE = arg[1]

local HEAD = [[
<!-- etc/limits writes this page. -->
# Limits

All that comes from outside has a limit: profiles, programs, clients, ELF files, requests. Where the user reads
no sentence, the column says in brackets what happens.]]

local PROFILER = [[

## The profiler

| what | limit | where | the user reads |
|---|---|---|---|]]

print(HEAD)
for _, row in ipairs(limits.ROWS) do
  if type(row) == "string" then
    print(("\n## %s\n\n| what | limit | the user reads |\n|---|---|---|"):format(row))
  else
    local number = limits.number_text(row[2])
    local reads = row[5]:gsub("{}", number):gsub("%%%.0f", "N"):gsub("%%[sg]", "...")
    print(("| %s | %s%s | %s |"):format(row[4], number, row[3] == "" and "" or " " .. row[3], reads))
  end
end

-- Returns the value of a macro: a number, a number shifted, or a product.
local function value_of(text)
  local number, shift = text:match("^%(?(%d+)u? *<?<? *(%d*)")
  local factor = text:match("^%(?%d+ *%* *(%d+)")
  return tonumber(number) * 2 ^ (tonumber(shift) or 0) * (tonumber(factor) or 1)
end

print(PROFILER)
for path in io.popen(("cd '%s/src' && find . -name '*.[ch]' | LC_ALL=C sort"):format(SOURCE)):lines() do
  local file = assert(io.open(SOURCE .. "/src/" .. path, "rb"))
  for comment, name, value in file:read("*a"):gmatch("\n/%* Limit of ([^*].-)%*/\n#define ([%u%d_]+) +([^\n]+)") do
    comment = comment:gsub("\n%*?%*?", ""):gsub(" *$", "")
    local what, happens = comment:match("^(.-): (.*)$")
    local before, unit = what:match("^(.*), in (%l+)$")
    print(("| %s | %s%s | `%s` in `%s` | %s |"):format(before or what, limits.number_text(value_of(value)),
      unit and " " .. unit or "", name, path:sub(3), happens))
  end
  file:close()
end
