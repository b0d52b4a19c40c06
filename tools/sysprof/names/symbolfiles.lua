----------------------------------------------------------------------------
-- Symbol files: names of host addresses without a name in the stream.
--
-- The symbols come from the ELF file of the module, its copy in a folder of the user, or
-- a debug file. Its build-id must be the module's. For a module without a build-id, only
-- the user's folders count.
--
-- A table with wanted addresses is read once, from beginning to end. The addresses are
-- searched, not the symbols. An address without a symbol lies in a stub, or in a function of
-- the unwind tables.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local elf = require("sysprof.names.elf")
local functionstarts = require("sysprof.names.functionstarts")
local limits = require("sysprof.base.limits")
local numbermap = require("sysprof.base.numbermap")
local sort = require("sysprof.base.sort")
local stubs = require("sysprof.names.stubs")
local text = require("sysprof.base.text")

local symbolfiles = {}
local methods = {}
local mt = { __index = methods }

local DEBUG_FOLDER = "/usr/lib/debug"
local ID_MIN = 2		-- Bytes of a build-id that can be in a path.
local NAME_MAX = limits.SYMBOL_NAME
local SHOWN = 400		-- Bytes of a path in a message,
local SHOWN_ID = 32		-- and of a build-id.
local EXACT_MAX = limits.NUMBER

local STT_NOTYPE, STT_SECTION, STT_FILE, STT_GNU_IFUNC = 0, 3, 4, 10
local STT_FUNC, STT_TLS = 2, 6
local SHN_UNDEF = 0

-- Of several symbols at one address, a global one is what users know.
local RANK = { [0] = 1, 3, 2 }	-- STB_LOCAL, STB_GLOBAL, STB_WEAK.

-- -- Addresses and symbols -------------------------------------------------

-- Collects symbols from the files of a module for its addresses: wanted.addr[0] to [n - 1],
-- ascending, as in the file. Keeps for each address the innermost symbol that contains it,
-- and the last symbol that begins before it; then, if no symbol contains it, the stub or
-- function.
local function new_wanted(list)
  sort(list)
  return { n = #list, addr = ffi.new("double[?]", #list + 1, list),
	   steps = 0,	-- Looks at them so far.
	   -- A name is an offset in strings.
	   start = {}, rank = {}, name = {}, strings = {}, unit = {}, unit_name = {},
	   near = {}, near_rank = {}, near_name = {}, near_strings = {}, near_section = {} }
end

-- Returns the number of the first wanted address that is not below addr.
local function first_from(wanted, addr)
  local list, low, high = wanted.addr, 0, wanted.n
  while low < high do
    local middle = bit.rshift(low + high, 1)
    if list[middle] < addr then low = middle + 1 else high = middle end
  end
  return low
end

local function string_at(strings, offset)
  return strings:sub(offset + 1, offset + NAME_MAX):match("^%Z*")
end

-- No name, and names that tools give to places, begin with these bytes.
local NOT_A_NAME = { [0] = true, [("."):byte()] = true, [("$"):byte()] = true }

local function is_name(byte)
  return byte ~= nil and not NOT_A_NAME[byte]
end

-- A symbol of known size is offered to the addresses in it.
local function offer(wanted, i, from, to, rank, strings, name)
  local list = wanted.addr
  while i < wanted.n and list[i] < to do
    local have = wanted.start[i]
    if not have or have < from or (have == from and wanted.rank[i] < rank) then
      wanted.start[i], wanted.rank[i] = from, rank
      wanted.name[i], wanted.strings[i] = name, strings
    end
    i, wanted.steps = i + 1, wanted.steps + 1
  end
end

-- Remembers any symbol at the first address behind its start. Of two with the same start,
-- a symbol of known size says more: its name is false.
local function remember_near(wanted, i, from, rank, section, strings, name)
  local have = wanted.near[i]
  if have and (have > from or (have == from and wanted.near_rank[i] >= rank)) then return end
  wanted.near[i], wanted.near_rank[i] = from, rank
  wanted.near_section[i] = section
  wanted.near_name[i], wanted.near_strings[i] = name, strings
end

local SIZED_RANK = 4	-- Above all of RANK.

-- Only a full table gives the end of a symbol without a size. Returns nil, or why it was not read to its end.
local function take_table(wanted, t, full)
  local symbols, sections, strings = t.symbols, t.sections, t.strings
  for k = 1, t.n - 1 do
    if wanted.steps > limits.SYMBOL_STEPS then return limits.sentence("SYMBOL_STEPS") end
    local s = symbols[k]
    local kind = s.info % 16
    local section = sections[s.shndx]
    if s.shndx ~= SHN_UNDEF and kind ~= STT_SECTION and kind ~= STT_FILE and
       kind ~= STT_TLS then
      local from, size = tonumber(s.value), tonumber(s.size)
      local i = first_from(wanted, from)
      if i < wanted.n then
	local rank = RANK[bit.rshift(s.info, 4)] or 1
	local known = is_name(strings:byte(s.name + 1)) and
		      (kind == STT_FUNC or kind == STT_GNU_IFUNC or
		       (kind == STT_NOTYPE and section and section.code))
	if known and size > 0 then
	  offer(wanted, i, from, from + size, rank, strings, s.name)
	end
	if full and section and section.code then
	  local open = known and size == 0
	  remember_near(wanted, i, from, open and rank or SIZED_RANK, section,
			strings, open and s.name)
	end
      end
    end
  end
end

-- Takes stubs and starts of functions for the addresses that are in no symbol.
local function take_units(wanted, file)
  local stub, start = stubs.new(file), functionstarts.new(file)
  for i = 0, wanted.n - 1 do
    if not wanted.start[i] and not wanted.unit_name[i] then
      local at, name
      if stub then at, name = stub(wanted.addr[i]) end
      at = at or start and start(wanted.addr[i])
      wanted.unit[i], wanted.unit_name[i] = at or wanted.unit[i], name
    end
  end
end

-- Calls found(address, start, name) for each address that has a name, or "" for it.
local function each_name(wanted, found)
  local near
  for i = 0, wanted.n - 1 do
    local addr = wanted.addr[i]
    if wanted.near[i] then near = i end
    if wanted.start[i] then
      found(addr, wanted.start[i], string_at(wanted.strings[i], wanted.name[i]))
    elseif near and wanted.near_name[near] and
	   addr < wanted.near_section[near].last then
      found(addr, wanted.near[near], string_at(wanted.near_strings[near], wanted.near_name[near]))
    elseif wanted.unit[i] then
      found(addr, wanted.unit[i], wanted.unit_name[i] or "")
    end
  end
end

-- -- Files -----------------------------------------------------------------

-- Problem of a file, for the user. Keeps only the first one.
local function complain(search, path, why)
  search.problem = search.problem or ("'%s' %s"):format(text.excerpt(path, SHOWN), why)
end

-- Opens a file that fits the module; crc is what the debug link says, if the
-- file was found by one. The caller has to close it.
local function open_file(search, path, crc)
  if search.tried[path] then return nil end
  search.tried[path] = true
  local file, why = elf.open(path, search.budget)
  if not file then
    if why then complain(search, path, why) end
    return nil
  end
  local wanted, why_not = search.buildid
  if wanted ~= "" and file.buildid then
    why_not = file.buildid ~= wanted and "has another build-id"
  elseif crc then
    local own, failed = file:checksum()
    why_not = failed or own ~= crc and "has another checksum"
  else
    why_not = wanted ~= "" and "has no build-id"
  end
  if not why_not then return file end
  complain(search, path, why_not)
  file:close()
end

-- Takes the symbols of a file. Returns whether it had a full table.
local function take_file(search, file)
  local full = false
  for _, which in ipairs { "symtab", "dynsym" } do
    local symbols, why = file:symbols(which)
    if symbols then
      why = take_table(search.wanted, symbols, which == "symtab")
      full = full or which == "symtab"
    end
    if why then complain(search, file.path, why) end
  end
  take_units(search.wanted, file)
  return full
end

local take_linked

-- Takes the symbols of the file at path, and of that which it names. Returns
-- whether a full table was found.
local function take_path(search, path, crc)
  local file = open_file(search, path, crc)
  if not file then return false end
  local full = take_file(search, file)
  local name, link_crc
  if not full and not crc then name, link_crc = file:debuglink() end
  file:close()
  return full or (name and take_linked(search, path, name, link_crc)) or false
end

function take_linked(search, path, name, crc)
  local folder = path:match("^(.*)/") or "."
  local places = { folder .. "/" .. name, folder .. "/.debug/" .. name,
		   DEBUG_FOLDER .. folder .. "/" .. name }
  for _, dir in ipairs(search.dirs) do places[#places + 1] = dir .. "/" .. name end
  for _, place in ipairs(places) do
    if take_path(search, place, crc) then return true end
  end
  return false
end

-- Where the symbols of a module may be.
local function candidates(search)
  local list, path, id = {}, search.path, search.buildid
  local base = text.file_name(path)
  local by_id = #id >= ID_MIN and ("/.build-id/%s/%s.debug"):format(
    text.hex_bytes(id:sub(1, 1)), text.hex_bytes(id:sub(2)))
  for _, dir in ipairs(search.dirs) do
    if base then
      list[#list + 1] = dir .. "/" .. base
      list[#list + 1] = dir .. "/" .. base .. ".debug"
    end
    if by_id then list[#list + 1] = dir .. by_id end
  end
  if id ~= "" then list[#list + 1] = path end
  if by_id then list[#list + 1] = DEBUG_FOLDER .. by_id end
  return list
end

-- Finds names for the addresses of a module, and reports missing files.
local function search_module(self, m)
  local search = { path = m.path, buildid = m.buildid, dirs = self.dirs, budget = self.budget,
		   wanted = new_wanted(m.list), tried = {}, problem = nil }
  local full = false
  for _, path in ipairs(candidates(search)) do
    full = full or take_path(search, path)
  end
  local named = 0
  each_name(search.wanted, function(addr, start, name)
    if name ~= "" then named = named + 1 end
    for _, bias in ipairs(m.biases[addr]) do
      self.found[addr + bias] = { addr = start + bias, name = name }
    end
  end)
  if named == #m.list or full or #self.dirs == 0 then return end
  local id = m.buildid == "" and "" or
	     (" (build-id %s)"):format(text.hex_bytes(m.buildid:sub(1, SHOWN_ID)))
  self.messages[#self.messages + 1] = ("%d address%s of '%s'%s without a name: %s"):format(
    #m.list - named, #m.list - named == 1 and "" or "es", text.excerpt(m.path, SHOWN), id,
    search.problem or "no file with its symbols was found")
end

-- -- Addresses without a name ----------------------------------------------

-- A symbol without a name says where a function begins.
local function has_name(symbol)
  return symbol ~= nil and symbol.name ~= ""
end

-- Returns the symbols of a profile by the addresses where they begin.
function symbolfiles.starts(profile)
  local starts = numbermap.new()
  for _, symbol in profile.hsyms:each() do
    if not has_name(starts[symbol.addr]) then starts[symbol.addr] = symbol end
  end
  return starts
end

-- Returns the addresses that have no name, by the file they are in: list has
-- them as in the file, biases by these where the file was mapped.
local function nameless(profile)
  local all, hsyms, starts = profile.stacks, profile.hsyms, symbolfiles.starts(profile)
  local list, by_key, seen = {}, {}, numbermap.new()
  for id = 1, #all.kind do
    local kind, addr = all.kind[id], all.payload[id]
    if (kind == G.SPF_FRAME_HOST or (kind == G.SPF_FRAME_CFUNC and not has_name(starts[addr]))) and
       not has_name(hsyms[addr]) and not seen[addr] then
      seen[addr] = true
      local m = profile:module_at(addr)
      if m and m.path:sub(1, 1) ~= "[" and m.bias <= addr and m.bias < EXACT_MAX then
	local key, at = m.buildid .. "\0" .. m.path, addr - m.bias
	local wanted = by_key[key]
	if not wanted then
	  wanted = { path = m.path, buildid = m.buildid, list = {}, biases = numbermap.new() }
	  by_key[key], list[#list + 1] = wanted, wanted
	end
	if not wanted.biases[at] then
	  wanted.list[#wanted.list + 1], wanted.biases[at] = at, {}
	end
	table.insert(wanted.biases[at], m.bias)
      end
    end
  end
  return list
end

-- -- API -------------------------------------------------------------------

-- Looks for the symbols of a profile; dirs are the user's folders, or nil. The
-- files are read when the first name is needed.
function symbolfiles.new(profile, dirs)
  return setmetatable({ profile = profile, dirs = dirs or {},
			found = nil,	-- Symbol by address.
			budget = { left = limits.SYMBOL_BYTES },
			messages = {},	-- Files that are missing in the user's folders.
  }, mt)
end

-- Returns { addr = start of the symbol, name = }, or nil; the name is "" if only the start is
-- known. Knows only addresses without a name in the profile.
function methods:find(addr)
  if not self.found then
    self.found = numbermap.new()
    for _, m in ipairs(nameless(self.profile)) do search_module(self, m) end
  end
  return self.found[addr]
end

return symbolfiles
