----------------------------------------------------------------------------
-- Semantics of LuaJIT as text: programs with known results, each from one area of the
-- VM. Tests run them with and without the profiler and compare the text byte by byte.
--
-- The text has no addresses, times or sizes. It does not depend on the order of pairs(),
-- nor on the code that LuaJIT compiles. WRONG marks a result that differs from the known
-- one, so two runs that are wrong in the same way do not pass. The programs are in
-- semantics/, by area.
--
-- Each file there returns a function that gets a table:
--   area(name, f)            a program
--   out(...)                 adds a line with these values
--   is(what, got, expected)  adds a line, with WRONG if the two differ
----------------------------------------------------------------------------

local semantics = { areas = {} }

local FILES = { "numbers", "strings", "tables", "calls", "coroutines", "errors",
		"machine", "observers", "ctypes" }

local lines			-- Of the area that runs.

local function text_of(v)
  if type(v) == "number" then return ("%.17g"):format(v) end
  if type(v) == "string" then return ("%q"):format(v):gsub("\\\n", "\\n") .. "" end
  if type(v) == "boolean" or v == nil then return tostring(v) end
  return "<" .. type(v) .. ">"
end

local tools = {}

function tools.area(name, run)
  table.insert(semantics.areas, { name = name, run = run })
end

function tools.out(...)
  local list = {}
  for i = 1, select("#", ...) do list[i] = text_of((select(i, ...))) end
  lines[#lines + 1] = table.concat(list, " ")
end

function tools.is(what, got, expected)
  local text = what .. " = " .. text_of(got)
  if got ~= expected and (got == got or expected == expected) then
    text = text .. " WRONG, expected " .. text_of(expected)
  end
  lines[#lines + 1] = text
end

for _, name in ipairs(FILES) do require("semantics." .. name)(tools) end

-- Runs an area. Returns its text.
function semantics.run(area)
  lines = { "== " .. area.name }
  local ok, message = pcall(area.run)
  if not ok then lines[#lines + 1] = "WRONG, failed: " .. tostring(message) end
  return table.concat(lines, "\n") .. "\n"
end

-- Runs all areas. Returns the text of all.
function semantics.run_all()
  local list = {}
  for i, area in ipairs(semantics.areas) do list[i] = semantics.run(area) end
  return table.concat(list)
end

return semantics
