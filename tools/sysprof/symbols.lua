----------------------------------------------------------------------------
-- Sysprof reader: frames to names.
--
-- A name is an entry { text = , kind = }, the same one for the same text. The
-- text is clean (sysprof.text); the kind is one of symbols.KINDS and tells
-- the colour in a flame graph. The names of a profile are known only after
-- all of it was read.
----------------------------------------------------------------------------

local G = require("sysprof.grammar")
local stacks = require("sysprof.stacks")
local text = require("sysprof.text")

local symbols = {}
local methods = {}
local mt = { __index = methods }

symbols.KINDS = { "lua", "builtin", "c", "vm", "marker", "unknown" }

local EXCERPT_MAX = 40

-- -- Parts of names --------------------------------------------------------

-- Name of the chunk of a Lua function, from lua_Debug.source.
local function chunk_name(source)
  local mark = source:sub(1, 1)
  if mark == "@" or mark == "=" then return text.clean(source:sub(2)) end
  return '[string "' .. text.excerpt(source, EXCERPT_MAX) .. '"]'
end

local function lua_name(f)
  local chunk = chunk_name(f.chunk)
  if f.firstline == 0 then return "main chunk (" .. chunk .. ")" end
  local place = ("%s:%.0f"):format(chunk, f.firstline)
  if f.name == "" then return place end
  return text.clean(f.name) .. " (" .. place .. ")"
end

-- The module that an address lies in. The latest one counts: libraries come
-- and go.
local function module_of(profile, addr)
  local list = profile.modules
  for i = #list, 1, -1 do
    if addr >= list[i].first and addr < list[i].last then return list[i] end
  end
end

local function hex(number)
  if number < 2^31 then return ("0x%x"):format(number) end
  return ("0x%x%08x"):format(math.floor(number / 2^32), number % 2^32)
end

local function address_name(profile, addr)
  local m = module_of(profile, addr)
  if not m then return hex(addr) end
  local offset = addr - m.bias
  if offset < 0 or m.bias >= 2^53 then offset = addr - m.first end
  return text.clean(m.path:match("[^/]+/*$") or "?") .. "+" .. hex(offset)
end

-- -- Frames ----------------------------------------------------------------

local function host_entry(self, addr, symbol)
  if not symbol or symbol.name == "" then
    return self:entry(address_name(self.profile, addr), "unknown")
  end
  return self:entry(text.clean(symbol.name),
		    symbol.name:find("^lj_") and "vm" or "c")
end

-- Symbol of a C function, by the address where it begins.
local function symbol_at_start(self, addr)
  if not self.starts then
    self.starts = {}
    for _, symbol in pairs(self.profile.hsyms) do
      self.starts[symbol.addr] = symbol
    end
  end
  return self.profile.hsyms[addr] or self.starts[addr]
end

local namer = {}

namer[G.SPF_FRAME_LFUNC] = function(self, fid, line)
  local f = self.profile.lfuncs[fid]
  local name = f and lua_name(f) or ("[lua function %.0f]"):format(fid)
  if self.lines and line > 0 then name = ("%s:%.0f"):format(name, line) end
  return self:entry(name, "lua")
end

namer[G.SPF_FRAME_FFUNC] = function(self, ffid)
  local name = self.profile.ffuncs[ffid]
  return self:entry(name and text.clean(name) or
		    ("[builtin %.0f]"):format(ffid), "builtin")
end

namer[G.SPF_FRAME_CFUNC] = function(self, addr)
  return host_entry(self, addr, symbol_at_start(self, addr))
end

namer[G.SPF_FRAME_HOST] = function(self, addr)
  return host_entry(self, addr, self.profile.hsyms[addr])
end

namer[stacks.UNDEFINED] = function(self)
  return self:entry("[stack not defined in the stream]", "marker")
end

namer[stacks.WIDE] = function(self)
  return self:entry("[frame out of range]", "unknown")
end

-- -- API -------------------------------------------------------------------

-- lines: the current line is part of the name of a Lua function.
function symbols.new(profile, lines)
  return setmetatable({
    profile = profile, lines = lines,
    by_text = {}, by_frame = {},
    starts = nil,	-- Symbol by address of its start, made when needed.
  }, mt)
end

function methods:entry(name, kind)
  local e = self.by_text[name]
  if not e then
    e = { text = name, kind = kind }
    self.by_text[name] = e
  end
  return e
end

-- Returns the entry of a part of a joined stack: a frame or a marker.
function methods:name(part)
  local e = self.by_frame[part]
  if e then return e end
  if type(part) == "string" then
    e = self:entry(part, "marker")
  else
    local all = self.profile.stacks
    local name = namer[all.kind[part]]
    -- Other kinds have no name: they only steer the join.
    e = name and name(self, all.payload[part], all.extra[part]) or
	self:entry("[misplaced frame]", "unknown")
  end
  self.by_frame[part] = e
  return e
end

-- Returns the start of the symbol that a code address lies in, if known.
function methods:symaddr(addr)
  local symbol = self.profile.hsyms[addr]
  return symbol and symbol.addr
end

return symbols
