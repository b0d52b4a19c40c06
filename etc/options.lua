----------------------------------------------------------------------------
-- doc/options.md: options of a profile, and those of each command. etc/options runs this.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local optiontable = require("sysprof.base.optiontable")
local verbs = require("sysprof.verbs.verbs")
local viewspecs = require("sysprof.cli.viewspecs")

-- Where a document tells more about an option of a profile.
local MORE = {
  path = "lua-api.md#files", hz = "clocks.md#the-highest-rate", clock = "clocks.md",
  delay = "lua-api.md#duration-delay-and-size",
  duration = "lua-api.md#duration-delay-and-size", max_size = "lua-api.md#duration-delay-and-size",
  threads = "lua-api.md#threads", signal = "lua-api.md#the-signal", flush = "lua-api.md#writing",
  backtracer = "lua-api.md#code-without-unwind-tables", jitter = "clocks.md#clocks", gc = "clocks.md#live-memory",
  fork = "lua-api.md#fork-exec-and-other-programs", shared = "lua-api.md#several-profiles-in-a-file",
  force = "lua-api.md#files", follow = "lua-api.md#files", prefer_tick = "clocks.md#the-highest-rate",
  control = "environment.md#while-the-program-runs", coroutines = "environment.md#coroutines",
  paused = "environment.md#while-the-program-runs",
}

local COMMANDS = { "RUN", "RECORD", "TOP", "DUMP" }

local HEAD = [[
<!-- etc/options writes this page. -->
# Options

## Options of a profile
An option has one name in [Lua](lua-api.md), in [C](c-api.md), in the variable [LUAJIT_SYSPROF](environment.md) and in
requests to [live programs](live.md). Commands take `--max-size=SIZE` for `max_size`.

| option | value | default | where | |
|---|---|---|---|---|
]]

local VALUES = [[

### Times, sizes and counts
A number has the unit of its option. A text may have another one, in any case: `interval = "500us"`,
`max_size = "512M"`.

| | units |
|---|---|
| times | `us`, `ms`, `s`, `m` or `min`, `h` |
| sizes and counts | `K`, `M`, `G`: 1024, 1024², 1024³; `KiB` is the same |

In the variable, a flag is `NAME`, `NAME=true` or `NAME=false`. In names of clocks and events, it has `+` for `,`.

## Options of commands
`-h` shows the common options of a command, `--help` all of them, `--version` the versions. Of an option that is not
repeatable, the last value counts.
]]

local lines = {}

local function add(...) lines[#lines + 1] = table.concat({ ... }) end

-- Returns a text for a cell of a table.
local function cell(s) return (s:gsub("[|*]", "\\%0")) end

local function code(s) return s ~= "" and "`" .. s .. "`" or "" end

-- -- Options of a profile ----------------------------------------------------

local function value_of(row)
  local value, range = ({ FLAG = "flag", NUMBER = "number", COUNT = "whole number", TEXT = "file", LIST = "names",
			  SIGNAL = "signal", FREE = "signal", CONTROL = "file, signal" })[row.kind] or row.unit, ""
  if row.kind == "CHOICE" then
    value = "`" .. table.concat(optiontable.choices(row), "`, `") .. "`"
  end
  if row.most ~= "" then
    range = (", %s to %s"):format(row.least, row.most)
  elseif row.least ~= "" then
    range = ", at least " .. row.least
  end
  return value .. range
end

local function default_of(row)
  local default = row.default
  local of_variable = row.doors.ENV and optiontable.default(row, "ENV") or default
  if of_variable ~= default then
    local also = row.doors.RUN and optiontable.default(row, "RUN") == of_variable and " and `run`" or ""
    return ("%s; variable%s: %s"):format(code(default), also, code(of_variable))
  end
  return code(default) .. (row.doors.REQUIRED and "; Lua: required" or "")
end

local function doors_of(row)
  local list = {}
  local field = row.field:match("^opt%.(.*)$")
  if row.doors.LUA then list[1] = "Lua" end
  if field and row.doors.LUA then
    list[#list + 1] = field == row.name and "C" or ("C (`%s`)"):format(field)
  end
  if row.doors.ENV then list[#list + 1] = "variable" end
  if row.doors.LIVE then list[#list + 1] = "live" end
  for _, door in ipairs(COMMANDS) do
    if row.doors[door] then list[#list + 1] = ("[%s](#%s)"):format(door:lower(), door:lower()) end
  end
  return table.concat(list, ", ")
end

local function add_profile()
  for _, row in ipairs(optiontable.ROWS) do
    if not row.doors.HIDDEN then
      local more = (row.name ~= "duration" or row.doors.LUA) and MORE[row.name]
      local name = more and ("[`%s`](%s)"):format(row.name, more) or code(row.name)
      add("| ", name, " | ", value_of(row), " | ", default_of(row), " | ", doors_of(row), " | ", cell(row.help), " |")
    end
  end
end

-- -- Options of commands -----------------------------------------------------

-- Returns the lines of a help as one. A line that begins with a word and a colon is an item of a list.
local function sentence(help)
  local text = help[1]
  for i = 2, #help do
    local is_item = help[i]:find("^%l+: ") and not text:find("[;:.]$")
    text = text .. (is_item and "; " or " ") .. help[i]
  end
  return cell(text)
end

local function name_of(spec)
  local names = {}
  if spec.short then names[1] = "`-" .. spec.short .. (spec.arg and " " .. spec.arg or "") .. "`" end
  if spec.name then names[#names + 1] = "`--" .. spec.name .. (spec.arg and "=" .. spec.arg or "") .. "`" end
  return table.concat(names, ", ")
end

local told = {}	-- The first command with an option, by the row.

-- Adds a command. door: of its options of a profile.
local function add_command(name, usage, specs, door)
  local rows, of_profile, others, order = {}, {}, {}, {}
  for _, spec in ipairs(specs) do
    if spec.key == "help" then break end	-- The last ones are those of all commands.
    local more = (spec.list or spec.joined) and "; repeatable" or ""
    local row = ("| %s | %s%s |"):format(name_of(spec), sentence(spec.help), more)
    local is_of_profile = door and spec.name and optiontable.find((spec.name:gsub("-", "_")), door)
    local first = told[row]
    if is_of_profile then
      of_profile[#of_profile + 1] = name_of(spec)
    elseif first then
      if not others[first] then order[#order + 1] = first end
      others[first] = others[first] or {}
      table.insert(others[first], name_of(spec))
    else
      rows[#rows + 1], told[row] = row, name
    end
  end
  add("\n### ", name, "\n", code(usage))
  if #of_profile > 0 then
    add("\nThe [options of a profile](#options-of-a-profile) ", table.concat(of_profile, ", "), ".")
  end
  for _, first in ipairs(order) do
    add(("\nAs of [%s](#%s): %s."):format(first, first, table.concat(others[first], ", ")))
  end
  if #rows > 0 then add("\n| option | |\n|---|---|\n", table.concat(rows, "\n")) end
end

add((HEAD:gsub("\n$", "")))
add_profile()
add((VALUES:gsub("\n$", "")))
for _, verb in ipairs(verbs.LIST) do
  local door = verb.name:upper()
  local usage = verb.help.usage:gsub("^Usage: ", "")
  add_command(verb.name, usage, verb.specs, #optiontable.of(door) > 0 and door)
end
add_command("luajit-parse-sysprof", "luajit-parse-sysprof [options] FILE...", viewspecs.SPECS)
add("\n`luajit-sysprof` without a verb, and `luajit-parse-sysprof`, also have `--completion=bash`: ",
    command.COMPLETION.help[1], ".")
print(table.concat(lines, "\n"))
