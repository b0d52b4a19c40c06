----------------------------------------------------------------------------
-- Demangled names of C++ and Rust symbols.
--
-- The C++ library of this machine demangles C++ names. Without it they stay mangled. For
-- Rust see sysprof.names.rust_names.
----------------------------------------------------------------------------

local ffi = require("ffi")
local limits = require("sysprof.base.limits")
local rust_names = require("sysprof.names.rust_names")
local text = require("sysprof.base.text")

local demangle = {}

local LIBRARIES = { "libstdc++.so.6", "stdc++", "libc++abi.so.1" }

-- A name may refer to its own parts again and again, so a short one can stand
-- for gigabytes. Real names are far from these bounds.
local NAME_MAX, REFERENCES_MAX, TEXT_MAX = limits.CXX_NAME, limits.CXX_REFERENCES, limits.PLAIN_NAME

ffi.cdef("char *__cxa_demangle(const char *, char *, size_t *, int *);")
ffi.cdef("void free(void *);")

local library	-- false: not found.

local function load_library()
  for _, name in ipairs(LIBRARIES) do
    local ok, lib = pcall(ffi.load, name)
    if ok and pcall(function() return lib.__cxa_demangle end) then return lib end
  end
  return false
end

-- Returns how many references to its own parts a name has: S or T, digits and upper case, "_".
local function references_of(name)
  local n = 0
  for part in text.parts(name:match("^(.*)_") or "", "_") do
    if part:reverse():match("^[%dA-Z]*"):find("[ST]") then n = n + 1 end
  end
  return n
end

local function cxx_name(name)
  if #name > NAME_MAX or name:find("%z") or references_of(name) > REFERENCES_MAX then return nil end
  if library == nil then library = load_library() end
  if not library then return nil end
  local s = library.__cxa_demangle(name, nil, nil, nil)
  if s == nil then return nil end
  local plain = ffi.string(s)
  ffi.C.free(s)
  return #plain <= TEXT_MAX and plain or nil
end

-- Cuts the version off the name of a symbol, such as "memcpy@@GLIBC_2.14". "memcpy@plt" is the
-- stub that jumps to the function.
function demangle.without_version(name)
  local own, version = name:match("^([^@]+)@(.*)$")
  return own and version ~= "plt" and own or name
end

-- Returns the name of a symbol as users know it: without its version; with
-- as_is names of C++ and Rust stay mangled.
function demangle.name(name, as_is)
  name = demangle.without_version(name)
  if as_is then return name end
  local target = name:match("^(.*)@plt$")
  if target then return demangle.name(target) .. "@plt" end
  if name:find("^_R") then return rust_names.name(name) or name end
  if not name:find("^_?_Z") then return name end
  return rust_names.name(name) or cxx_name(name) or name
end

return demangle
