-- No pattern of the reader takes quadratic time, whatever text it gets: its steps are counted on texts of n and 4 n
-- bytes that are made for it.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local t = require("tools_test")
local pattern_steps = require("pattern_steps")

local SHORT, FACTOR = 40, 4
local MOST = 6	-- Times the steps on the short text, where the square has 16.

-- The matcher agrees with that of Lua about what is slow.
local function growth(pattern, finds_all)
  local its, worst, worst_text = pattern_steps.new(pattern), 0, ""
  local short, long = pattern_steps.texts(its.chars, SHORT), pattern_steps.texts(its.chars, SHORT * FACTOR)
  for i, s in ipairs(short) do
    local ratio = its.run(long[i], finds_all) / (its.run(s, finds_all) + SHORT)
    if ratio > worst then worst, worst_text = ratio, s end
  end
  return worst, worst_text
end

for _, pattern in ipairs { "%s+$", "[^/]+/*$", " %((.+):(%d+)%)$", "^(.-)[ \t]*$", "[ST][%dA-Z]*_", "^([^:]*):?%d*$" } do
  t.ok(growth(pattern) > MOST, pattern .. " is quadratic")
end
for _, pattern in ipairs { "^(.*%S)", "^.*/(.*)$", "[^\n]+", "%S+" } do
  t.ok(growth(pattern) < MOST, pattern .. " is linear")
end

-- Patterns of texts that nobody else chooses, by their file.
local OWN = {
  ["cli/options.lua"] = "the command line", ["verbs/verbs.lua"] = "the command line",
  ["cli/runspecs.lua"] = "the command line", ["cli/viewspecs.lua"] = "the command line",
  ["cli/targets.lua"] = "the command line", ["cli/completion.lua"] = "its own script",
  ["cli/wanted.lua"] = "the command line", ["verbs/serve.lua"] = "the command line",
}

-- Calls found(pattern, finds_all, line) for each pattern of a file.
local function each_pattern(source, found)
  for line in source:gmatch("[^\n]+") do
    for method, at in line:gmatch(":(%a+)%(()") do
      local rest = line:sub(at)
      local is_call = method == "find" or method == "match" or method == "gmatch" or method == "gsub"
      local quote = rest:sub(1, 1)
      if is_call and (quote == '"' or quote == "'") then
	local stop = 2
	while rest:sub(stop, stop) ~= quote do stop = stop + (rest:sub(stop, stop) == "\\" and 2 or 1) end
	local literal, after = rest:sub(1, stop), rest:sub(stop + 1)
	local is_plain = method == "find" and after:find("^, [^,]+, true%)") ~= nil
	if not is_plain and not after:find("^ *%.%.") then
	  found(assert(loadstring("return " .. literal))(), method == "gmatch" or method == "gsub", line)
	end
      end
    end
  end
end

do
  local calls = {}
  each_pattern("a:match('x') or b:gsub(\"y\", z) and c:find('.', 1, true) or d:gmatch('w')", function(pattern, finds_all)
    calls[#calls + 1] = pattern .. (finds_all and " all" or "")
  end)
  t.equal(table.concat(calls, ", "), "x, y all, w all", "the patterns of a line")
end

local files, patterns, known = 0, 0, {}
for path in io.popen(("find '%s/tools/sysprof' -name '*.lua'"):format(t.source)):lines() do
  local name = path:match("/tools/sysprof/(.*)$")
  local file = assert(io.open(path, "rb"))
  local source = file:read("*a")
  file:close()
  files = files + 1
  each_pattern(source, function(pattern, finds_all, line)
    patterns = patterns + 1
    local key = pattern .. tostring(finds_all)
    if not OWN[name] and not known[key] then
      known[key] = true
      local ratio, s = growth(pattern, finds_all)
      t.ok(ratio < MOST, ("%s: %s\n  takes %.1f times as long on %d times the text, such as '%s'"):format(name, line, ratio,
	FACTOR, s))
    end
  end)
end
t.ok(files > 100 and patterns > 250, ("%d files, %d patterns"):format(files, patterns))

-- table.sort() takes quadratic time on some orders.
local sorts = io.popen(("grep -rl 'table[.]sort(' '%s/tools/sysprof'"):format(t.source)):read("*a")
t.equal(sorts:gsub("[^\n]*/base/sort.lua\n", ""), "", "files that call table.sort")

t.finish()
