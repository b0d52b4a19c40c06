----------------------------------------------------------------------------
-- Options of a profile, for commands: optiontable.def, which the profiler includes, too.
--
-- The same rules as src/profile/api/lj_opttext.c: units, ranges, and words for what is expected. A door is where
-- users may give an option: LUA, ENV, LIVE, and the verbs RUN, RECORD, TOP, DUMP.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")

local NAMELESS = "-"	-- A choice that has no name.

local DOORS = { "LUA", "ENV", "LIVE", "RUN", "RECORD", "TOP", "DUMP", "REQUIRED", "HIDDEN", "BRIEF" }

local optiontable = {}

-- -- The table ---------------------------------------------------------------

local units, words, rows, defaults = {}, {}, {}, {}

-- Returns a set of doors as a table, from the sum of their bits.
local function doors_of(sum)
  local set = {}
  for i, door in ipairs(DOORS) do set[door] = math.floor(sum / 2^(i - 1)) % 2 == 1 end
  return set
end

local env = {}

function env.UNIT(kind, name, factor)
  units[kind] = units[kind] or {}
  units[kind][name] = factor
end

function env.KIND(kind, before, after, example)
  words[kind] = { before = before, after = after, example = example }
end

function env.OPTION(name, kind, unit, least, most, default, field, _, doors, help, also)
  rows[#rows + 1] = { name = name, kind = kind, unit = unit, least = least, most = most, default = default,
		      field = field, doors = doors_of(doors), help = help, also = also }
end

function env.DEFAULT(name, doors, default)
  defaults[#defaults + 1] = { name = name, doors = doors_of(doors), default = default }
end

for i, door in ipairs(DOORS) do env[door] = 2^(i - 1) end

-- Names of options, kinds and fields stand for themselves.
local member = { __index = function(it, name) return it.name .. "." .. name end }
setmetatable(env, { __index = function(_, name) return name end })
env.opt, env.fo = setmetatable({ name = "opt" }, member), setmetatable({ name = "fo" }, member)

do
  local path = debug.getinfo(1, "S").source:match("^@(.*)%.lua$") .. ".def"
  local file = assert(io.open(path, "rb"))
  local code = file:read("*a"):gsub("^/%*.-%*/", "")
  file:close()
  assert(load(code, "=" .. path, "t", env))()
end

optiontable.ROWS = rows

-- Returns the options of a door, in their order.
function optiontable.of(door)
  local list = {}
  for _, row in ipairs(rows) do
    if row.doors[door] then list[#list + 1] = row end
  end
  return list
end

-- Returns an option of a door, or nil.
function optiontable.find(name, door)
  for _, row in ipairs(rows) do
    if row.name == name and row.doors[door] then return row end
  end
end

-- Returns the default of an option at a door, "" if it has none.
function optiontable.default(row, door)
  for _, its in ipairs(defaults) do
    if its.name == row.name and its.doors[door] then return its.default end
  end
  return row.default
end

-- -- Values ------------------------------------------------------------------

-- Returns the factor of a unit, or nil.
local function factor_of(kind, unit)
  unit = unit:lower()
  if (kind == "SIZE" or kind == "COUNT") and unit:find(".b$") then unit = unit:gsub("i?b$", "") end
  return (units[kind] or {})[unit]
end

-- Returns a number with or without a unit in the unit of an option, or nil.
local function to_number(row, s)
  local digits, rest = s:match("^(%d*%.?%d*)(.*)$")
  if not digits:find("%d") then return nil end
  local exponent, unit = rest:match("^([eE][+-]?%d+)(.*)$")
  local n = tonumber(digits .. (exponent or ""))
  unit = unit or rest
  if unit == "" then return n end
  local factor = factor_of(row.kind, unit)
  return factor and n * factor / (row.kind == "TIME" and factor_of(row.kind, row.unit) or 1)
end

-- Returns the choices of an option.
function optiontable.choices(row)
  local list = {}
  for name in row.unit:gmatch("%S+") do
    if name ~= NAMELESS then list[#list + 1] = name end
  end
  return list
end

-- Returns what an option expects.
function optiontable.expected(row)
  local its, unit, range = words[row.kind], row.unit, ""
  if row.kind == "CHOICE" then
    unit = table.concat(optiontable.choices(row), ", "):gsub(", ([^,]*)$", " or %1")
  elseif row.kind == "FLAG" then
    unit = ""
  end
  if row.least ~= "" then range = (row.most ~= "" and ", " or ", at least ") .. row.least end
  if row.most ~= "" then range = range .. " to " .. row.most end
  return its.before .. unit .. its.after .. its.example .. range
end

-- Signals of users have any case, and need no SIG. The profiler knows which there are.
local function to_signal(s)
  if s:find("^%d+$") and #s <= 3 then return tonumber(s) end
  s = s:upper()
  return s:find("^%u[%u%d+-]*$") and (s:find("^SIG") and s or "SIG" .. s) or nil
end

-- Returns the value of a text on the command line, or nil and what is expected.
function optiontable.value(row, s)
  local n
  if row.kind == "SIGNAL" then
    n = to_signal(s)
  else
    n = to_number(row, s)
    local least, most = to_number(row, row.least) or 0, to_number(row, row.most) or limits.NUMBER
    if n and row.kind == "SIZE" then n = math.floor(n) end
    if n and not (n >= least and n <= most) or row.kind == "COUNT" and n and n % 1 ~= 0 then n = nil end
  end
  if n then return n end
  return nil, optiontable.expected(row)
end

-- Returns the example of an option's values, such as " such as 512M or 2G".
function optiontable.example(row) return words[row.kind].example end

-- Returns the key of an option's value on the command line. A flag that stands for a value has one of its own.
function optiontable.key(row)
  return row.kind == "FLAG" and row.unit ~= "" and row.unit .. "_" .. row.name or row.name
end

-- Returns the values for another door, by name, from values of the command line of a door.
function optiontable.given(values, door, other)
  local given = {}
  for _, row in ipairs(optiontable.of(door)) do
    local value = values[optiontable.key(row)]
    if value == true and row.unit ~= "" then value = row.unit end
    if optiontable.find(row.name, other) then given[row.name] = value end
  end
  return given
end

return optiontable
