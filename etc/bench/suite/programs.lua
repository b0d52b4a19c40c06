----------------------------------------------------------------------------
-- Programs that the benchmark suite measures.
--
-- They are the real workloads of the tests, and five like those that users profile.
-- run(iterations) is deterministic and returns a checksum. One iteration takes some
-- 50 ms in the interpreter.
----------------------------------------------------------------------------

local ffi = require("ffi")
local workloads = require("workloads")

local programs = { list = {} }

local MOD = 2^31 - 1

local function mix(sum, x)
  return (sum * 31 + x) % MOD
end

for _, w in ipairs(workloads.list) do programs.list[#programs.list + 1] = w end

-- rounds: turns of the loop in run that make one iteration.
local function add(name, rounds, run)
  programs.list[#programs.list + 1] = {
    name = name,
    run = function(iterations) return run(iterations * rounds) end
  }
end

-- -- JSON ------------------------------------------------------------------

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n" }
local unescapes = { n = "\n" }
local encode, decode

local function encode_string(s)
  return '"' .. s:gsub('["\\\n]', escapes) .. '"'
end

local function encode_object(t, out)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  out[#out + 1] = "{"
  for i, key in ipairs(keys) do
    if i > 1 then out[#out + 1] = "," end
    out[#out + 1] = encode_string(key) .. ":"
    encode(t[key], out)
  end
  out[#out + 1] = "}"
end

function encode(value, out)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = encode_string(value)
  elseif kind ~= "table" then
    out[#out + 1] = tostring(value)
  elseif #value == 0 then
    encode_object(value, out)
  else
    out[#out + 1] = "["
    for i = 1, #value do
      if i > 1 then out[#out + 1] = "," end
      encode(value[i], out)
    end
    out[#out + 1] = "]"
  end
end

local function decode_string(s, at)
  local stop = at + 1
  while s:byte(stop) ~= 34 do
    stop = stop + (s:byte(stop) == 92 and 2 or 1)
  end
  local text = s:sub(at + 1, stop - 1):gsub("\\(.)", function(c) return unescapes[c] or c end)
  return text, stop + 1
end

-- Reads items up to a closing bracket. read_item(at) reads one and returns its end.
local function decode_items(s, at, close, read_item)
  if s:byte(at) == close then return at + 1 end
  while true do
    at = read_item(at)
    local c = s:byte(at)
    at = at + 1
    if c == close then return at end
  end
end

function decode(s, at)
  local c = s:byte(at)
  if c == 34 then
    return decode_string(s, at)
  elseif c == 123 then
    local t = {}
    return t, decode_items(s, at + 1, 125, function(from)
      local key, colon = decode_string(s, from)
      local stop
      t[key], stop = decode(s, colon + 1)
      return stop
    end)
  elseif c == 91 then
    local t = {}
    return t, decode_items(s, at + 1, 93, function(from)
      local stop
      t[#t + 1], stop = decode(s, from)
      return stop
    end)
  end
  local word, stop = s:match("^([%w.+-]+)()", at)
  if word == "true" then return true, stop elseif word == "false" then return false, stop end
  return tonumber(word), stop
end

local function document(n)
  local users = {}
  for i = 1, n do
    users[i] = { id = i, name = "user \"" .. i .. "\"", active = i % 3 == 0,
		 tags = { "a" .. i % 7, "b\\" .. i % 5 }, score = i * 0.25,
		 address = { street = "Road\n" .. i, number = i % 100 } }
  end
  return { users = users, total = n }
end

add("json", 20, function(iterations)
  local sum = 0
  for i = 1, iterations do
    local out = {}
    encode(document(150), out)
    local text = table.concat(out)
    local back = decode(text, 1)
    sum = mix(sum, #text + back.users[i % 150 + 1].id + #back.users[7].address.street)
  end
  return sum
end)

-- -- Templates -------------------------------------------------------------

local page = [[
<html><head><title><%= title %></title></head><body>
<% for i, row in ipairs(rows) do %>
<tr class="<%= i % 2 == 0 and 'even' or 'odd' %>"><td><%= i %></td>
<% for _, cell in ipairs(row) do %><td><%= cell %></td><% end %>
<% if row.note then %><td><b><%= row.note %></b></td><% end %></tr>
<% end %>
</body></html>]]

local entities = { ["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;", ['"'] = "&quot;" }

local function html(value)
  return (tostring(value):gsub('[<>&"]', entities))
end

-- Compiles a template into a function: text is printed, <%= %> is a value, <% %> is
-- code.
local function compile(template)
  local code = { "local html, out, title, rows = ..." }
  local at = 1
  while true do
    local from, stop, equals, inner = template:find("<%%(=?)%s*(.-)%s*%%>", at)
    code[#code + 1] = ("out[#out + 1] = %q"):format(template:sub(at, (from or 0) - 1))
    if not from then break end
    code[#code + 1] = equals == "=" and "out[#out + 1] = html(" .. inner .. ")" or inner
    at = stop + 1
  end
  return assert(loadstring(table.concat(code, "\n"), "=page"))
end

local function render(view, title, rows)
  local out = {}
  view(html, out, title, rows)
  return table.concat(out)
end

add("template", 450, function(iterations)
  local sum, view = 0, nil
  for i = 1, iterations do
    -- Now and then compile it again, like a server that reloads its pages.
    if i % 30 == 1 then view = compile(page) end
    local rows = {}
    for k = 1, 50 do
      rows[k] = { k * i, "<name " .. k .. ">", ("x"):rep(k % 9), note = k % 7 == 0 and "a & b" }
    end
    sum = mix(sum, #render(view, "Page \"" .. i .. "\"", rows))
  end
  return sum
end)

-- -- FFI -------------------------------------------------------------------

ffi.cdef [[
typedef struct { double x, y; int32_t id; } bench_point;
double strtod(const char *, char **);
int memcmp(const void *, const void *, size_t);
void qsort(void *, size_t, size_t, int (*)(const bench_point *, const bench_point *));
]]

local points_type = ffi.typeof("bench_point[?]")

local by_x = ffi.cast("int (*)(const bench_point *, const bench_point *)", function(a, b)
  return a.x < b.x and -1 or a.x > b.x and 1 or 0
end)

-- C code that calls back into Lua must not be called from compiled code.
local function sort_points(points, n)
  ffi.C.qsort(points, n, ffi.sizeof("bench_point"), by_x)
end
jit.off(sort_points)

add("ffi", 12, function(iterations)
  local sum, n = 0, 1000
  local points, copy = points_type(n), points_type(n)
  for round = 1, iterations do
    for i = 0, n - 1 do
      local p = points[i]
      p.x, p.y, p.id = ffi.C.strtod(tostring(i * 7 % 311 + round), nil), i / 2, i
    end
    for step = 1, 10 do
      for i = 0, n - 1 do
	local p, q = points[i], points[(i * 13 + step) % n]
	p.x, p.y = p.x + (q.y - p.y) / 64, p.y + (q.x - p.x) / 64
      end
    end
    ffi.copy(copy, points, ffi.sizeof(points))
    if round % 4 == 0 then sort_points(copy, 200) end
    sum = mix(sum, copy[round % n].id + ffi.C.memcmp(copy, points, 8))
  end
  return sum
end)

-- -- Deep stacks -----------------------------------------------------------

-- The work at the bottom, long enough that nearly all samples are there.
local function bottom(seed)
  local sum = seed
  for i = 1, 20000 do sum = (sum * 33 + i) % MOD end
  return sum
end

local function lua_frames(n, seed)
  if n == 0 then return bottom(seed) end
  return lua_frames(n - 1, seed) + n % 2
end

add("deep_lua", 100, function(iterations)
  local sum = 0
  for i = 1, iterations do sum = mix(sum, lua_frames(150, i)) end
  return sum
end)

-- Each level is a C function and the Lua function that it calls.
local function c_frames(n, seed)
  if n == 0 then return bottom(seed) end
  local result
  string.gsub("x", "x", function() result = c_frames(n - 1, seed) end)
  return result
end

add("deep_c", 100, function(iterations)
  local sum = 0
  for i = 1, iterations do sum = mix(sum, c_frames(50, i)) end
  return sum
end)

function programs.by_name(name)
  for _, program in ipairs(programs.list) do
    if program.name == name then return program end
  end
end

return programs
