----------------------------------------------------------------------------
-- Which LuaJIT a program will load, and how to give it ours.
--
-- The dynamic linker lists what it would load, with the present environment and with ours. The program does not run.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local elf = require("sysprof.names.elf")
local files = require("sysprof.base.files")
local library = require("sysprof.live.library")
local limits = require("sysprof.base.limits")
local text = require("sysprof.base.text")

local NAME = "libluajit-5.1.so.2"
local SETUID, SETGID = 2048, 1024	-- Bits of the mode.
local ANY = "LUAJIT_SYSPROF=fork "	-- Also of a server whose master forks workers.

local linking = {}

-- Returns the program that a shell would run by this name, else the file that has it, or nil.
local function find_program(name)
  if name:find("/", 1, true) then return files.stat(name) and name end
  for folder in text.parts(os.getenv("PATH") or "", ":") do
    local path = (folder == "" and "." or folder) .. "/" .. name
    local st = files.stat(path)
    if st and st.kind == "file" and st.mode % 2 == 1 then return path end
  end
  return files.stat(name) and name
end

-- Returns the dynamic linker that an ELF file names, or nil.
local function interpreter(file)
  local section = file:section(".interp")
  local s = section and file:bytes(section)
  return s and s:match("^%Z+")
end

-- Returns our library, beside the luajit that runs us, and the dynamic linker; nil if one is missing.
local function ours()
  local exe = files.link("/proc/self/exe") or ""
  local prefix = exe:match("^(.*)/[^/]*/[^/]*$")
  local file = elf.open("/proc/self/exe")
  local linker = file and interpreter(file)
  if file then file:close() end
  if not prefix or not linker then return nil end
  local paths = files.matching(prefix .. "/lib/*/" .. NAME)
  table.insert(paths, 1, prefix .. "/lib/" .. NAME)
  for _, path in ipairs(paths) do
    if library.of_file(path) == "ours" then return path, linker end
  end
end

-- Returns the libluajit that the dynamic linker finds for a program, "" if it finds none, or nil if the program needs
-- none; and the linker's last words. variables: of the environment, before the command.
local function find_library(linker, program, variables)
  local pipe = io.popen(("%s%s --list %s 2>&1"):format(variables, text.quoted(linker), text.quoted(program)))
  local list = pipe and pipe:read(limits.SMALL_FILE) or ""
  if pipe then pipe:close() end
  local last = ""
  for line in list:gmatch("[^\n]+") do
    last = line
    local name, path = line:match("^%s*(%S+) => (.*)$")
    path = (path or line:match("%S.*") or ""):match("^(.*) %(0x%x+%)$") or ""
    if text.base_name(name or path):find("^libluajit") then return path, last end
  end
  return nil, last
end

-- Returns rows { label, text, is_bad } on a program that needs no libluajit at its start.
local function without_library(path, is_static, lib)
  local folder = lib:match("^(.*)/")
  local has = library.of_file(path)
  if has == "ours" then
    return { { "its LuaJIT", "in the program itself, with the profiler" },
	     { "to profile it", ANY .. text.quoted(path) } }
  elseif has == "other" then
    return { { "its LuaJIT", "in the program itself, without the profiler", true },
	     { "to profile it", ("link it with %s in place of its libluajit.a, or with %s"):format(
	       text.quoted(folder .. "/libluajit-5.1.a"), text.quoted(lib)) } }
  elseif is_static then
    return { { "its LuaJIT", "none: the program is static, and holds none", true } }
  end
  return { { "its LuaJIT", "none at its start; a module that it loads later may need one", true },
	   { "to profile it", ("name that module in place of the program; without RPATH: LD_LIBRARY_PATH=%s %s%s"):format(
	     text.quoted(folder), ANY, text.quoted(path)) } }
end

-- The dynamic linker ignores variables of a program with other rights.
local function has_rights(path)
  local mode = files.stat(path).mode
  return mode % (2 * SETUID) >= SETUID or mode % (2 * SETGID) >= SETGID
end

-- Returns rows on the way to give a program our library in place of the one that the linker finds.
local function remedy(path, found, lib, linker, run)
  local folder = lib:match("^(.*)/")
  if has_rights(path) then
    local line = "as root, add the line %s to a file in /etc/ld.so.conf.d, and run ldconfig"
    return { { "to profile it", line:format(folder) },
	     { "", "LD_LIBRARY_PATH has no effect: the program is setuid or setgid" } }
  end
  local function works(variables)
    local path_of_library = find_library(linker, path, variables)
    return path_of_library and library.of_file(path_of_library) == "ours"
  end
  local by_path = ("LD_LIBRARY_PATH=%s "):format(text.quoted(folder))
  if works(by_path) then return { { "to profile it", by_path .. run } } end
  local by_preload = ("LD_PRELOAD=%s "):format(text.quoted(lib))
  return { { "to profile it", works(by_preload) and by_preload .. run or
	     ("put %s in the place of %s"):format(lib, found) },
	   { "", "LD_LIBRARY_PATH has no effect: the RPATH of the program comes first" } }
end

-- Returns rows on the libluajit of a program that is not static; or nil and a message.
local function with_linker(path, lib, linker, run)
  local found, words = find_library(linker, path, has_rights(path) and "LD_LIBRARY_PATH= LD_PRELOAD= " or "")
  if not found and words:find("error", 1, true) then return nil, "the dynamic linker says: " .. words end
  if not found then return without_library(path, false, lib) end
  local is_ours = library.of_file(found) == "ours"
  local rows = is_ours and { { "to profile it", run } } or remedy(path, found, lib, linker, run)
  table.insert(rows, 1, { "its LuaJIT", found == "" and "missing: the dynamic linker finds no libluajit" or
    found .. (is_ours and ", with the profiler" or ", without the profiler"), not is_ours })
  return rows
end

-- Returns rows { label, text, is_bad } on the LuaJIT of a program and the way to profile it; or nil and a message.
function linking.check(name)
  local path = find_program(name)
  if not path then return nil, ("there is no program '%s'%s"):format(name, command.process_hint(name)) end
  path = files.real_path(path) or path
  local file, why = elf.open(path)
  if not file then
    local hint = path:find("%.lua$") and ("; 'luajit-sysprof run %s' profiles a script"):format(text.quoted(name)) or ""
    return nil, ("%s %s; expected a program or a library%s"):format(path, why or "is no regular file", hint)
  end
  local own, is_static = interpreter(file), not file:section(".dynamic")
  file:close()
  local lib, linker = ours()
  if not lib then return nil, "this luajit has no " .. NAME .. "; run the luajit-sysprof of its own installation" end
  local rows
  if is_static then
    rows = without_library(path, true, lib)
  elseif own and text.base_name(own) ~= text.base_name(linker) then
    rows = { { "its LuaJIT", ("unknown: it has the dynamic linker %s, ours is %s"):format(own, linker), true } }
  else
    rows, why = with_linker(path, lib, linker, ANY .. (own and text.quoted(path) or "PROGRAM"))
    if not rows then return nil, why end
  end
  table.insert(rows, 1, { (own or is_static) and "program" or "module", path })
  for _, row in ipairs(rows) do row[2] = text.clean(row[2]) end
  return rows
end

return linking
