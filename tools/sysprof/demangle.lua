----------------------------------------------------------------------------
-- Sysprof reader: names of symbols as their programmers wrote them.
--
-- C++ names are demangled by the C++ library of this machine. Without one they
-- stay as they are. Names of Rust are those of C++ with a hash at the end and
-- characters that C++ has not, written in letters; its newer names, with "_R", stay
-- as they are.
----------------------------------------------------------------------------

local ffi = require("ffi")

local demangle = {}

local LIBRARIES = { "libstdc++.so.6", "stdc++", "libc++abi.so.1" }

-- A name may refer to its own parts again and again, so a short one can stand
-- for gigabytes. Real names are far from these bounds.
local NAME_MAX = 1024
local REFERENCES_MAX = 40
local TEXT_MAX = 4096

ffi.cdef("char *__cxa_demangle(const char *, char *, size_t *, int *);")
ffi.cdef("void free(void *);")

local library	-- false if there is none.

local function load_library()
  for _, name in ipairs(LIBRARIES) do
    local ok, lib = pcall(ffi.load, name)
    if ok and pcall(function() return lib.__cxa_demangle end) then return lib end
  end
  return false
end

local function cxx_name(name)
  local _, references = name:gsub("[ST][%dA-Z]*_", "")
  if #name > NAME_MAX or references > REFERENCES_MAX or name:find("%z") then return nil end
  if library == nil then library = load_library() end
  if not library then return nil end
  local s = library.__cxa_demangle(name, nil, nil, nil)
  if s == nil then return nil end
  local text = ffi.string(s)
  ffi.C.free(s)
  return #text <= TEXT_MAX and text or nil
end

-- What stands between two "$" in names of Rust; others are "u" and hexadecimal
-- digits.
local RUST = { SP = "@", BP = "*", RF = "&", LT = "<", GT = ">", LP = "(", RP = ")",
	       C = "," }

local function rust_character(code)
  local ascii = tonumber(code:match("^u(%x%x)$") or "", 16)
  return RUST[code] or ascii and ascii >= 32 and ascii < 127 and string.char(ascii) or nil
end

-- Returns the name of a Rust function without its hash, nil if it is none.
local function rust_name(name)
  local hash = ("%x"):rep(16)
  local parts, rest = {}, name:match("^_ZN(%d.*)17h" .. hash .. "E")
  if not rest or #name > NAME_MAX then return nil end
  while rest ~= "" do
    local len, tail = rest:match("^(%d%d?%d?)(.*)$")
    len = tonumber(len)
    if not len or len == 0 or len > #tail then return nil end
    local part = tail:sub(1, len):gsub("^_%$", "$"):gsub("%$(%w+)%$", rust_character)
    parts[#parts + 1], rest = part:gsub("%.%.", "::"), tail:sub(len + 1)
  end
  return table.concat(parts, "::")
end

-- Cuts the version off the name of a symbol, as in "memcpy@@GLIBC_2.14".
function demangle.without_version(name)
  return name:match("^([^@]+)@") or name
end

-- Returns the name of a symbol as users know it: without its version; with
-- as_is C++ names stay mangled.
function demangle.name(name, as_is)
  name = demangle.without_version(name)
  if as_is or not name:find("^_?_Z") then return name end
  return rust_name(name) or cxx_name(name) or name
end

return demangle
