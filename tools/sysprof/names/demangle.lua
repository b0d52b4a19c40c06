----------------------------------------------------------------------------
-- Demangled names of C++ and Rust symbols.
--
-- The C++ library of this machine demangles C++ names. Without it they stay mangled. For
-- Rust see sysprof.names.rust_names.
----------------------------------------------------------------------------

local ffi = require("ffi")
local rust_names = require("sysprof.names.rust_names")

local demangle = {}

local LIBRARIES = { "libstdc++.so.6", "stdc++", "libc++abi.so.1" }

-- A name may refer to its own parts again and again, so a short one can stand
-- for gigabytes. Real names are far from these bounds.
local NAME_MAX = 1024
local REFERENCES_MAX = 40
local TEXT_MAX = 4096

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
