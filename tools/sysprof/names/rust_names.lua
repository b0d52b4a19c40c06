----------------------------------------------------------------------------
-- Rust symbol demangler.
--
-- Knows both manglings of the Rust compiler: C++-like names that end in a hash, and names
-- that begin with "_R" (the Rust reference, "v0 symbol mangling format"). Leaves out
-- hashes of crates, and lifetimes.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")

local rust_names = {}

-- A name may refer to its own parts again and again. Real names are far from
-- these bounds.
local STEPS_MAX, DEPTH_MAX, TEXT_MAX = limits.RUST_STEPS, limits.RUST_DEPTH, limits.PLAIN_NAME

-- -- Names with a hash -----------------------------------------------------

-- What stands between two "$"; others are "u" and hexadecimal digits.
local CHARACTERS = { SP = "@", BP = "*", RF = "&", LT = "<", GT = ">", LP = "(", RP = ")",
		     C = "," }

local function character(code)
  local ascii = tonumber(code:match("^u(%x%x)$") or "", 16)
  return CHARACTERS[code] or ascii and ascii >= 32 and ascii < 127 and string.char(ascii) or
	 nil
end

local HASH = ("%x"):rep(16)

local function with_hash(name)
  local parts, rest = {}, name:match("^_ZN(%d.*)17h" .. HASH .. "E")
  if not rest then return nil end
  while rest ~= "" do
    local len, tail = rest:match("^(%d%d?%d?)(.*)$")
    len = tonumber(len)
    if not len or len == 0 or len > #tail then return nil end
    local part = tail:sub(1, len):gsub("^_%$", "$"):gsub("%$(%w+)%$", character)
    parts[#parts + 1], rest = part:gsub("%.%.", "::"), tail:sub(len + 1)
  end
  return table.concat(parts, "::")
end

-- -- Names that begin with _R: parts ---------------------------------------

-- d has the name without its first two bytes, and the position of the next byte. A wrong
-- name raises the error FAIL.
local FAIL = {}

local function fail() error(FAIL, 0) end

-- Takes what matches a pattern with one capture, from here on; or nil.
local function accept(d, pattern)
  local _, last, got = d.s:find("^(" .. pattern .. ")", d.at)
  if last then d.at = last + 1 end
  return got
end

local function expect(d, pattern)
  return accept(d, pattern) or fail()
end

-- A number in the digits 0-9a-zA-Z: "_" is 0, "0_" is 1.
local function base62(d)
  local digits = expect(d, "%w*_")
  if #digits > 13 then fail() end
  local n = 0
  for i = 1, #digits - 1 do
    local c = digits:byte(i)
    n = n * 62 + (c <= 57 and c - 48 or c >= 97 and c - 87 or c - 29)
  end
  return digits == "_" and 0 or n + 1
end

-- Returns the number that distinguishes equal names, or 0.
local function disambiguator(d)
  return accept(d, "s") and base62(d) + 1 or 0
end

local function identifier(d)
  local punycode = accept(d, "u")
  local len = tonumber(accept(d, "0") or expect(d, "[1-9]%d?%d?%d?"))
  accept(d, "_")
  if d.at + len - 1 > #d.s then fail() end
  local name = d.s:sub(d.at, d.at + len - 1)
  d.at = d.at + len
  return punycode and "punycode{" .. name .. "}" or name
end

-- Calls read(d, ...) where an earlier part begins.
local function back(d, from, read, ...)
  local to, after = base62(d) + 1, d.at
  if to >= from then fail() end
  d.at = to
  local text = read(d, ...)
  d.at = after
  return text
end

-- Runs read(d, kind, in_value, from) for the kind that is next, within bounds.
local function nested(d, readers, in_value)
  local from = d.at
  local kind = expect(d, "%a")
  local read = readers[kind] or fail()
  d.steps, d.depth = d.steps + 1, d.depth + 1
  if d.steps > STEPS_MAX or d.depth > DEPTH_MAX then fail() end
  local text = read(d, in_value, from)
  d.depth = d.depth - 1
  if #text > TEXT_MAX then fail() end
  return text
end

-- -- Paths, types and constants --------------------------------------------

local paths, types = {}, {}

local function path(d, in_value) return nested(d, paths, in_value) end
local function type_of(d) return nested(d, types) end

-- Texts of what read gives up to an "E".
local function list(d, read)
  local out, bytes = {}, 0
  while not accept(d, "E") do
    out[#out + 1] = read(d)
    bytes = bytes + #out[#out]
    if bytes > TEXT_MAX then fail() end
  end
  return out
end

local function constant(d)
  local from = d.at
  if accept(d, "p") then return "_" end
  if accept(d, "B") then return back(d, from, constant) end
  local kind = expect(d, "[%l]")
  local minus, digits = accept(d, "n") or "", expect(d, "%x*_"):sub(1, -2)
  local n = #digits <= 13 and tonumber("0" .. digits, 16)
  if kind == "b" then return n == 1 and "true" or "false" end
  if kind == "c" then return n and n >= 32 and n < 127 and ("'%c'"):format(n) or "'?'" end
  return (minus == "n" and "-" or "") .. (n and ("%.0f"):format(n) or "0x" .. digits)
end

-- Returns nothing for a lifetime.
local function argument(d)
  if accept(d, "L") then
    base62(d)
    return ""
  end
  return accept(d, "K") and constant(d) or type_of(d)
end

local function arguments(d)
  local out = {}
  for _, text in ipairs(list(d, argument)) do
    if text ~= "" then out[#out + 1] = text end
  end
  return table.concat(out, ", ")
end

local function within(out, name)
  return name ~= "" and out .. "::" .. name or out
end

function paths.C(d)
  disambiguator(d)
  return identifier(d)
end

function paths.N(d, in_value)
  local space = expect(d, "%a")
  local out, number = path(d, in_value), disambiguator(d)
  local name = identifier(d)
  if space:find("%l") then return within(out, name) end
  local what = space == "C" and "closure" or space == "S" and "shim" or space
  return ("%s::{%s%s#%d}"):format(out, what, name ~= "" and ":" .. name or "", number)
end

local function implementation(d)
  disambiguator(d)
  path(d)
end

function paths.M(d)
  implementation(d)
  return "<" .. type_of(d) .. ">"
end

function paths.Y(d)
  local of = type_of(d)
  return ("<%s as %s>"):format(of, path(d))
end

function paths.X(d)
  implementation(d)
  return paths.Y(d)
end

function paths.I(d, in_value)
  local out = path(d, in_value)
  local inside = arguments(d)
  if inside == "" then return out end
  return out .. (in_value and "::<" or "<") .. inside .. ">"
end

function paths.B(d, in_value, from) return back(d, from, path, in_value) end

local BASIC = { a = "i8", b = "bool", c = "char", d = "f64", e = "str", f = "f32", h = "u8",
		i = "isize", j = "usize", l = "i32", m = "u32", n = "i128", o = "u128",
		s = "i16", t = "u16", u = "()", v = "...", x = "i64", y = "u64", z = "!",
		p = "_" }
for letter, name in pairs(BASIC) do
  types[letter] = function() return name end
end

-- A named type is a path.
for kind, read in pairs(paths) do
  types[kind] = function(d, _, from) return read(d, false, from) end
end

function types.B(d, _, from) return back(d, from, type_of) end
function types.S(d) return "[" .. type_of(d) .. "]" end

function types.A(d)
  local of = type_of(d)
  return ("[%s; %s]"):format(of, constant(d))
end

function types.T(d)
  local parts = list(d, type_of)
  return "(" .. table.concat(parts, ", ") .. (#parts == 1 and ",)" or ")")
end

local function reference(mark)
  return function(d)
    if accept(d, "L") then base62(d) end
    return mark .. type_of(d)
  end
end
types.R, types.Q = reference("&"), reference("&mut ")
function types.P(d) return "*const " .. type_of(d) end
function types.O(d) return "*mut " .. type_of(d) end

function types.F(d)
  if accept(d, "G") then base62(d) end
  local unsafe, abi = accept(d, "U") and "unsafe " or "", ""
  if accept(d, "K") then
    local name = accept(d, "C") or identifier(d):gsub("_", "-")
    abi = ('extern "%s" '):format(name)
  end
  local out = ("%s%sfn(%s)"):format(unsafe, abi, table.concat(list(d, type_of), ", "))
  local result = type_of(d)
  return result == "()" and out or out .. " -> " .. result
end

-- A trait, with the types that it is tied to.
local function bound(d)
  local out, tied = path(d), {}
  while accept(d, "p") do
    local name = identifier(d)
    tied[#tied + 1] = name .. " = " .. type_of(d)
  end
  if #tied == 0 then return out end
  local rest = table.concat(tied, ", ") .. ">"
  return out:sub(-1) == ">" and out:sub(1, -2) .. ", " .. rest or out .. "<" .. rest
end

function types.D(d)
  if accept(d, "G") then base62(d) end
  local out = "dyn " .. table.concat(list(d, bound), " + ")
  expect(d, "L")
  base62(d)
  return out
end

local function read_name(s)
  local d = { s = s, at = 1, steps = 0, depth = 0 }
  local text = path(d, true)
  -- The rest: the crate that instantiated the function, and suffixes of tools.
  if not d.s:find("^[%u.$]", d.at) and d.at <= #d.s then fail() end
  return text
end

-- -- API -------------------------------------------------------------------

-- Returns the demangled name of a Rust function, or nil for other symbols.
function rust_names.name(symbol)
  if #symbol > limits.RUST_NAME then return nil end
  local rest = symbol:match("^_R(%u.*)$")
  if not rest then return with_hash(symbol) end
  local ok, text = pcall(read_name, rest)
  if ok then return text end
  if text ~= FAIL then error(text, 0) end
  return nil
end

return rust_names
