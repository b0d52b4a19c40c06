----------------------------------------------------------------------------
-- Source file, lines, address and module of a frame.
--
-- For formats with fields of their own for what sysprof.names.symbols leaves out of names.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local limits = require("sysprof.base.limits")
local symbols = require("sysprof.names.symbols")
local text = require("sysprof.base.text")

local places = {}

local NOWHERE = {}
local FILE_MAX = limits.NAME_PART	-- Bytes of a file's name.

-- Returns the file of a chunk's name, nil if it is not one.
local function file_of(chunk)
  return chunk:sub(1, 1) == "@" and #chunk > 1 and text.short(chunk:sub(2, FILE_MAX + 5), FILE_MAX) or nil
end

local place_of = {}

place_of[G.SPF_FRAME_LFUNC] = function(profile, fid, line)
  local f = profile.lfuncs[fid]
  if not f then return NOWHERE end
  if f.now then	-- See sysprof.model.versions.
    line = line > 0 and math.max(f.now_line and f.now_line(line) or line + f.now_shift, 1) or line
    f = f.now
  end
  return { file = file_of(f.chunk), chunk = text.short(f.chunk, FILE_MAX), source = f.chunk,
	   first = f.firstline < limits.LINE and f.firstline or 0, line = line > 0 and line or nil }
end

local function host_place(profile, addr)
  return { addr = addr, module = select(2, profile:module_at(addr)) }
end

place_of[G.SPF_FRAME_CFUNC] = host_place
place_of[G.SPF_FRAME_HOST] = host_place

local OTHER = { builtin = "[Lua builtins]", vm = "[VM]", lua = "[Lua]", waiting = "[waiting]",
		unknown = "[unknown]", c = "[unknown]" }

-- Returns the name of what code belongs to, by its place and the entry of its
-- name: the source of a Lua function, the file of host code, else a kind; a
-- marker is its own.
function places.module_name(profile, place, entry)
  local module = place.module and profile.modules[place.module]
  if module then return text.clean(module.path) end
  if place.file then return place.file end
  if place.chunk then return symbols.chunk_name(place.source) end
  return not place.addr and OTHER[entry.plain.kind] or
	 place.addr and OTHER.unknown or entry.text
end

-- Returns a function that gives the place of a part of a joined stack, see
-- sysprof.show.join: a table, the same one each time, with the known ones of
--   file, chunk  of a Lua function; chunk is "=name" or the text if no file
--   source       its chunk as the profile has it
--   first, line  line where it is defined, and the current one
--   addr         address of host code
--   module       its number in profile.modules
function places.new(profile)
  local all, known = profile.stacks, {}
  return function(part)
    if type(part) == "string" then return NOWHERE end
    part = math.abs(part)
    local place = known[part]
    if not place then
      local find = place_of[all.kind[part]]
      place = find and find(profile, all.payload[part], all.extra[part]) or NOWHERE
      known[part] = place
    end
    return place
  end
end

return places
