----------------------------------------------------------------------------
-- Names of frames.
--
-- A name is an entry { text, kind, plain, mangled }, one for each text. The text is clean
-- (sysprof.base.text). The kind, one of symbols.KINDS, gives the colour in a flame graph. A
-- compiled Lua function has an entry of kind "compiled"; its plain is the entry of the
-- interpreted one. Other entries are their own plain. mangled is the name in the symbol
-- table, if that differs. All names are known only when the whole profile was read.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local demangle = require("sysprof.names.demangle")
local limits = require("sysprof.base.limits")
local stacks = require("sysprof.model.stacks")
local symbolfiles = require("sysprof.names.symbolfiles")
local text = require("sysprof.base.text")
local work = require("sysprof.names.work")

local symbols = {}
local methods = {}
local mt = { __index = methods }

symbols.KINDS = { "lua", "compiled", "builtin", "c", "vm", "marker", "unknown", "waiting" }

local EXCERPT = 40
local TEXT_MAX, PART_MAX = limits.NAME, limits.NAME_PART

-- -- Parts of names --------------------------------------------------------

-- Name of the chunk of a Lua function, from lua_Debug.source.
local function chunk_name(source)
  local mark = source:sub(1, 1)
  if mark ~= "@" and mark ~= "=" then
    return '[string "' .. text.excerpt(source:sub(1, TEXT_MAX), EXCERPT) .. '"]'
  end
  return #source > 1 and text.short(source:sub(2, PART_MAX + 5), PART_MAX) or "?"
end

symbols.chunk_name = chunk_name

-- What a function was in the base of a comparison, see sysprof.model.samefuncs.
local function was_text(was)
  local place = was.chunk and ("%s:%.0f"):format(chunk_name(was.chunk), was.line)
  local name = was.name and text.short(was.name, PART_MAX)
  return name and "was " .. name .. (place and (" (%s)"):format(place) or "") or "moved from " .. place
end

-- Name of a Lua function with a place: a line, "?" if it is not known, or nil
-- for where the function is defined. Also returns the place, and the name alone, "" if it is not known.
local function lua_name(f, line)
  local chunk = chunk_name(f.chunk)
  local name, first = text.short(f.name, PART_MAX), ("%.0f"):format(f.firstline)
  if f.firstline == 0 and f.lastline == 0 and name ~= "" then
    first = "?"  -- Bytecode without debug information.
    if name == first then name = "" end
  elseif f.firstline == 0 then
    name = "main chunk"
    -- LuaJIT's own names have parentheses, as "(command line)".
    if not line then
      return name .. " (" .. (chunk:match("^%((.*)%)$") or chunk) .. ")", chunk, name
    end
  end
  local place = chunk .. ":" .. (line or first)
  return (name == "" and place or name .. " (" .. place .. ")") ..
	 (f.path and " [" .. text.short(f.path, PART_MAX) .. "]" or "") ..
	 (f.was and ", " .. was_text(f.was) or ""), place, name
end

-- Name of code without a symbol, by its address or where its function begins.
local function address_name(profile, addr)
  local m = profile:module_at(addr)
  if not m then return text.hex(addr) end
  local offset = addr - m.bias
  if offset < 0 or m.bias >= limits.NUMBER then offset = addr - m.first end
  return text.short(text.file_name(m.path) or "?", PART_MAX) .. "+" .. text.hex(offset)
end

-- Where the function of an address begins, if a symbol without a name says that: in the same
-- module. Otherwise the address.
local function start_of(profile, addr, symbol)
  local start = symbol and symbol.addr
  if not start or start > addr then return addr end
  local m = profile:module_at(addr)
  return m and start >= m.first and start or addr
end

-- -- Frames ----------------------------------------------------------------

local function host_entry(self, addr, symbol)
  if not symbol or symbol.name == "" then
    return self:entry(address_name(self.profile, start_of(self.profile, addr, symbol)), "unknown")
  end
  local own = demangle.without_version(symbol.name)
  local name = demangle.name(own, self.mangled)
  local e = self:entry(text.clean(name), symbol.name:find("^lj_") and "vm" or "c")
  if name ~= own then e.mangled = e.mangled or text.clean(own) end
  return e
end

-- A symbol without a name says only where the function begins: then files may know more.
local function complete(self, symbol, addr)
  if symbol and symbol.name ~= "" then return symbol end
  return self.files:find(addr) or symbol
end

-- Symbol that a code address lies in, if known.
local function symbol_at(self, addr)
  return complete(self, self.profile.hsyms[addr], addr)
end

-- Symbol of a C function, by the address where it begins.
local function symbol_at_start(self, addr)
  if not self.starts then
    self.starts = symbolfiles.starts(self.profile)
  end
  return complete(self, self.profile.hsyms[addr] or self.starts[addr], addr)
end

local namer = {}

namer[G.SPF_FRAME_LFUNC] = function(self, fid, line)
  local f = self.profile.lfuncs[fid]
  if not f then
    return self:entry(("[lua function %.0f]"):format(fid), "lua")
  elseif self.profile:is_builtin(fid) then
    return self:entry(text.short(f.name, PART_MAX), "builtin")
  end
  if line > 0 and f.line_of then
    line = math.max(f.line_of(line), 1)
  elseif line > 0 and f.shift then
    line = math.max(line + f.shift, 1)
  end
  local shown, place, name = lua_name(f.as or f, self.lines and (line > 0 and ("%.0f"):format(line) or "?") or nil)
  local e = self:entry(shown, "lua")
  e.place, e.name = place, name
  return e
end

namer[G.SPF_FRAME_FFUNC] = function(self, ffid)
  local name = self.profile.ffuncs[ffid]
  return self:entry(name and text.clean(name) or
		    ("[builtin %.0f]"):format(ffid), "builtin")
end

namer[G.SPF_FRAME_CFUNC] = function(self, addr, number)
  local name = self.profile:cfunc_name(addr, number)
  if name and name ~= "" then return self:entry(text.clean(name), "builtin") end
  return host_entry(self, addr, symbol_at_start(self, addr))
end

namer[G.SPF_FRAME_HOST] = function(self, addr)
  return host_entry(self, addr, symbol_at(self, addr))
end

namer[G.SPF_FRAME_TRACE] = function(self, payload)
  return self:entry(work.trace_name(payload), "marker")
end

namer[G.SPF_FRAME_WORK] = function(self, arg, what)
  return self:entry(work.name(what, arg), work.is_wait(what, arg) and "waiting" or "vm")
end

namer[stacks.UNDEFINED] = function(self)
  return self:entry("[stack not defined in the stream]", "marker")
end

namer[stacks.WIDE] = function(self)
  return self:entry("[frame out of range]", "unknown")
end

-- -- API -------------------------------------------------------------------

-- lines: Lua functions are named by their current lines, not by where they are
-- defined. mangled: C++ names stay as they are. dirs: folders with files that have
-- symbols, see sysprof.names.symbolfiles.
function symbols.new(profile, lines, mangled, dirs)
  return setmetatable({
    profile = profile, lines = lines, mangled = mangled,
    files = symbolfiles.new(profile, dirs),
    by_text = {}, compiled_by_text = {},
    by_part = {},	-- By part of a joined stack.
    starts = nil,	-- Symbol by address of its start, made when needed.
  }, mt)
end

function methods:entry(name, kind)
  if #name > TEXT_MAX then name = text.short(name, TEXT_MAX) end
  local e = self.by_text[name]
  if not e then
    e = { text = name, kind = kind }
    e.plain = e
    self.by_text[name] = e
  end
  return e
end

-- Returns the entry of the compiled code of a function.
local function compiled_entry(self, plain)
  local e = self.compiled_by_text[plain.text]
  if not e then
    e = { text = plain.text, kind = "compiled", plain = plain }
    self.compiled_by_text[plain.text] = e
  end
  return e
end

local function entry_of(self, part)
  if type(part) == "string" then return self:entry(part, "marker") end
  if part < 0 then return compiled_entry(self, self:name(-part)) end
  local all = self.profile.stacks
  local name = namer[all.kind[part]]
  -- Other kinds have no name: they only steer the join.
  return name and name(self, all.payload[part], all.extra[part]) or
	 self:entry("[misplaced frame]", "unknown")
end

-- Returns the entry of a part of a joined stack: a frame or a marker.
function methods:name(part)
  local e = self.by_part[part]
  if not e then
    e = entry_of(self, part)
    self.by_part[part] = e
  end
  return e
end

-- Returns the entry of a Lua function, wherever it stands in stacks.
function methods:lua_function(fid)
  return namer[G.SPF_FRAME_LFUNC](self, fid, 0)
end

-- Returns a list of sentences on files that are missing in the folders with symbols.
function methods:missing()
  return self.files.messages
end

-- Returns the entry of a C function's symbol, by the address where it begins.
function methods:symbol(addr)
  return host_entry(self, addr, symbol_at_start(self, addr))
end

-- Returns the start of the symbol that a code address lies in, if known.
function methods:symaddr(addr)
  local symbol = symbol_at(self, addr)
  return symbol and symbol.addr
end

-- Returns whether the code at an address is the VM's function that does work SPF_WORK_*.
function methods:does(addr, what)
  local symbol = symbol_at(self, addr)
  return symbol ~= nil and work.is_done_by(what, symbol.name)
end

return symbols
