----------------------------------------------------------------------------
-- ELF files: sections, build-id, debug link, symbol tables and relocations.
--
-- Reads little-endian 64-bit files. Opens regular files only, reads what it needs, and
-- compares each offset and size with the size of the file first. No content of a file
-- makes a function raise an error.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local bytes = require("sysprof.base.bytes")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local numbermap = require("sysprof.base.numbermap")
local regular = require("sysprof.base.regular")

local elf = {}
local methods = {}
local mt = { __index = methods }

local HEADER_SIZE, SECTION_SIZE, SYMBOL_SIZE, RELA_SIZE = 64, 64, 24, 24
local TABLE_MAX = limits.SYMBOL_TABLE
local NAME_MAX = limits.SYMBOL_NAME
local CRC_PART = 2^16		-- Bytes that are read at once for a checksum.

local SHT_SYMTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 4, 7, 8, 11
local SHN_XINDEX = 0xffff
local SHF_EXECINSTR = 4
local NT_GNU_BUILD_ID = 3
local R_GLOB_DAT, R_JUMP_SLOT, R_IRELATIVE = 6, 7, 37	-- Of x86-64.
local STT_GNU_IFUNC = 10

local header_ptr = ffi.typeof([[const struct {
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, phoff, shoff;
  uint32_t flags;
  uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
} *]])

local section_ptr = ffi.typeof([[const struct {
  uint32_t name, type;
  uint64_t flags, addr, offset, size;
  uint32_t link, info;
  uint64_t addralign, entsize;
} *]])

local symbol_ptr = ffi.typeof([[const struct {
  uint32_t name;
  uint8_t info, other;
  uint16_t shndx;
  uint64_t value, size;
} *]])

local rela_ptr = ffi.typeof([[const struct {
  uint64_t offset;
  uint32_t type, symbol;
  int64_t addend;
} *]])

local note_ptr = ffi.typeof("const struct { uint32_t namesz, descsz, type; } *")

-- -- Files -----------------------------------------------------------------

-- Returns size bytes at an offset, or nil if the file does not have them, or too much was read.
local function read_at(self, offset, size)
  if not (offset + size <= self.size) then return nil end
  if size == 0 then return "" end
  local budget = self.budget
  budget.left = budget.left - size
  if budget.left < 0 then return nil end
  local s = self.file:read(offset, size)
  return #s == size and s or nil
end

local function read_section(self, s, max)
  return s.size <= max and read_at(self, s.offset, s.size) or nil
end

-- Returns why something is not there.
local function reason(self, why)
  return self.budget.left < 0 and limits.sentence("SYMBOL_BYTES") or why
end

-- Reads the section headers; returns true, or nil and a message.
local function read_sections(self)
  local head = read_at(self, 0, HEADER_SIZE)
  if not head or head:sub(1, 4) ~= "\127ELF" then return nil, "is no ELF file" end
  if head:sub(5, 6) ~= "\2\1" then return nil, "is no 64-bit little-endian ELF file" end
  local h = ffi.cast(header_ptr, head)
  local at, n, names = tonumber(h.shoff), h.shnum, h.shstrndx
  if at == 0 then return true end
  local first = h.shentsize == SECTION_SIZE and read_at(self, at, SECTION_SIZE)
  if not first then return nil, reason(self, "is cut or damaged: it has no section headers") end
  -- Numbers that do not fit into the header are in the first section.
  local s = ffi.cast(section_ptr, first)
  if n == 0 then n = tonumber(s.size) end
  if names == SHN_XINDEX then names = s.link end
  local all = n <= limits.ELF_SECTIONS and read_at(self, at, n * SECTION_SIZE)
  if not all then return nil, reason(self, "is cut or damaged: its section headers are not there") end
  s = ffi.cast(section_ptr, all)
  for i = 0, n - 1 do
    self.sections[i] = {
      name = s[i].name, type = s[i].type, link = s[i].link,
      code = bit.band(tonumber(s[i].flags % 2^32), SHF_EXECINSTR) ~= 0,
      first = tonumber(s[i].addr), last = tonumber(s[i].addr) + tonumber(s[i].size),
      offset = tonumber(s[i].offset), size = tonumber(s[i].size),
      entry = tonumber(s[i].entsize),
    }
  end
  self.nsections, self.names = n, self.sections[names]
  return true
end

local function align4(n)
  return math.ceil(n / 4) * 4
end

-- Returns the build-id in the notes s, if it is there.
local function note_buildid(s)
  local at = 0
  while at + 12 <= #s do
    local n = ffi.cast(note_ptr, ffi.cast("const char *", s) + at)
    local desc = at + 12 + align4(n.namesz)
    if desc + n.descsz > #s then return nil end
    if n.type == NT_GNU_BUILD_ID and s:sub(at + 13, at + 12 + n.namesz) == "GNU\0" then
      return s:sub(desc + 1, desc + n.descsz)
    end
    at = desc + align4(n.descsz)
  end
end

local function find_buildid(self)
  local left = limits.ELF_NOTES
  for i = 1, self.nsections - 1 do
    local s = self.sections[i]
    if s.type == SHT_NOTE and left > 0 then
      left = left - 1
      local notes = read_section(self, s, limits.ELF_NOTE)
      local id = notes and note_buildid(notes)
      if id then return id end
    end
  end
end

-- -- API -------------------------------------------------------------------

-- Opens a file. budget: { left = how many bytes may be read of all files }, or nil. Returns an object with its path,
-- the buildid or nil, and the methods below. Returns nil if the file does not exist; nil and the reason if it is wrong.
function elf.open(path, budget)
  local file, err, is_other = regular.open(path)
  if not file then
    if is_other or not files.stat(path) then return nil end
    return nil, "cannot be read: " .. err
  end
  if file.size == 0 then
    file:close()
    return nil, "is empty"
  end
  local self = setmetatable({ path = path, file = file, size = file.size,
			      budget = budget or { left = limits.SYMBOL_BYTES },
			      sections = {}, nsections = 0 }, mt)
  local ok, why = read_sections(self)
  if not ok then
    file:close()
    return nil, why
  end
  self.buildid = find_buildid(self)
  return self
end

function methods:close()
  self.file:close()
end

-- Returns the name and the checksum of the file that has the symbols instead,
-- if one is named.
function methods:debuglink()
  local s = self:section(".gnu_debuglink")
  local link = s and read_section(self, s, limits.DEBUG_LINK)
  local name = link and link:match("^([^%z/]+)%z")
  local at = name and align4(#name + 1)
  if not name or at + 4 > #link then return nil end
  local a, b, c, d = link:byte(at + 1, at + 4)
  return name, a + b * 2^8 + c * 2^16 + d * 2^24
end

-- Returns the first section of this name, or nil: { first, last (addresses), code, entry
-- (bytes of an entry) }. Its bytes are in the file.
function methods:section(name)
  local names = self.names and read_section(self, self.names, TABLE_MAX)
  for i = 1, names and self.nsections - 1 or 0 do
    local s = self.sections[i]
    if s.type ~= SHT_NOBITS and names:sub(s.name + 1, s.name + #name + 1) == name .. "\0" then
      return s
    end
  end
end

-- Returns the bytes of a section, or nil if they are not there or too many.
function methods:bytes(section)
  return read_section(self, section, TABLE_MAX)
end

-- Returns the checksum of the whole file that debug links have; or nil and the reason.
function methods:checksum()
  local crc, at = 0, 0
  if self.size > self.budget.left then self.budget.left = -1 end
  while at < self.size do
    local part = read_at(self, at, math.min(CRC_PART, self.size - at))
    if not part then return nil, reason(self, "is cut") end
    crc = bytes.crc32(crc, ffi.cast("const uint8_t *", part), 0, #part)
    at = at + #part
  end
  return crc % 2^32
end

-- Names of functions that choose the code of another one, by their addresses.
local function chosen(t)
  local names, count = numbermap.new(), 0
  for k = 1, t.n - 1 do
    local s = t.symbols[k]
    if s.info % 16 == STT_GNU_IFUNC and count < limits.SYMBOL_LINKS then
      count = count + 1
      names[tonumber(s.value)] = s.name
    end
  end
  return names
end

-- Returns a function that gives the name of the function whose address the dynamic linker writes to a place in memory.
function methods:linked()
  local t, names, count = self:symbols("dynsym"), numbermap.new(), 0
  local choosers = t and chosen(t)
  for i = 1, t and self.nsections - 1 or 0 do
    local s = self.sections[i]
    local entries = s.type == SHT_RELA and read_section(self, s, TABLE_MAX)
    local list = entries and ffi.cast(rela_ptr, entries)
    for k = 0, entries and math.floor(#entries / RELA_SIZE) - 1 or -1 do
      local kind, symbol, name = list[k].type, list[k].symbol, nil
      if kind == R_IRELATIVE then
	name = choosers[tonumber(list[k].addend)]
      elseif (kind == R_GLOB_DAT or kind == R_JUMP_SLOT) and symbol > 0 and symbol < t.n and
	     self.sections[s.link] == t.section then
	name = t.symbols[symbol].name
      end
      if name and count < limits.SYMBOL_LINKS then
	names[tonumber(list[k].offset)], count = name, count + 1
      end
    end
  end
  return function(place)
    local name = names[place]
    return name and t.strings:sub(name + 1, name + NAME_MAX):match("^%Z*")
  end
end

-- Returns the table ".symtab" or ".dynsym" (wanted is "symtab" or "dynsym"): an
-- array symbols of n, the first one empty, and their strings. Returns nil if
-- the file has no such table; nil and the reason if it is wrong.
function methods:symbols(wanted)
  local want = wanted == "symtab" and SHT_SYMTAB or SHT_DYNSYM
  for i = 1, self.nsections - 1 do
    local s = self.sections[i]
    if s.type == want then
      local strings = self.sections[s.link]
      local entries = read_section(self, s, TABLE_MAX)
      local text = entries and strings and read_section(self, strings, TABLE_MAX)
      if not text then return nil, reason(self, "is cut or damaged: its symbol table is not there") end
      return { symbols = ffi.cast(symbol_ptr, entries), n = math.floor(#entries / SYMBOL_SIZE),
	       strings = text, entries = entries, sections = self.sections, section = s }
    end
  end
end

return elf
