----------------------------------------------------------------------------
-- Costs of Lua lines, by chunk.
--
-- Total counts the samples with the line anywhere on the stack, once each. Self counts those where the line is
-- the leaf; if charged, those where it is the innermost Lua line: C code and the VM's work belong to it.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local numbermap = require("sysprof.base.numbermap")

local LFUNC = G.SPF_FRAME_LFUNC

local linecosts = {}

local function new_row()
  return { self = 0, total = 0, compiled = 0, stamp = 0, compiled_stamp = 0, slots = {} }
end

local function add_total(row, v, stamp)
  if row.stamp ~= stamp then row.stamp, row.total = stamp, row.total + v end
end

-- Returns { chunk=, self=, total=, rows= } by chunk name, the sum of all samples, and all slots. rows are { self=,
-- total=, compiled=, slots= } by line; slots are those of self, compiled is the part of total where it was compiled
-- code. Line 0 is not known. key_of(chunk) returns the name under which a chunk counts, or nil if it does not.
function linecosts.count(view, charged, key_of)
  local p = view.profile
  local all = p.stacks
  local files, keys, sum, stamp, slots = {}, numbermap.new(), 0, 0, {}
  for fid, f in p.lfuncs:each() do keys[fid] = key_of(f.chunk) or nil end
  local function rows_of(frame)
    local key = all.kind[frame] == LFUNC and keys[all.payload[frame]]
    if not key then return nil end
    local file, line, f = files[key], all.extra[frame], p.lfuncs[all.payload[frame]]
    if line > 0 then line = math.max(f.line_of and f.line_of(line) or line + (f.shift or 0), 1) end	-- Of old ones.
    if not file then
      file = { chunk = key, self = 0, total = 0, rows = {}, stamp = 0 }
      files[key] = file
    end
    local row = file.rows[line]
    if not row then
      row = new_row()
      file.rows[line] = row
    end
    return file, row
  end
  view:each_joined(function(parts, n, v, slot)
    stamp, sum = stamp + 1, sum + v
    slots[stamp] = slot
    local leaf_file, leaf
    for i = 1, n do
      local frame = parts[i]
      local file, row
      if type(frame) == "number" then file, row = rows_of(math.abs(frame)) end
      if row then
	add_total(file, v, stamp)
	add_total(row, v, stamp)
	if frame < 0 and row.compiled_stamp ~= stamp then	-- An interpreted call of a recursion may come first.
	  row.compiled_stamp, row.compiled = stamp, row.compiled + v
	end
      end
      local is_lua = type(frame) == "number" and all.kind[math.abs(frame)] == LFUNC and
		     not p:is_builtin(all.payload[math.abs(frame)])
      if is_lua or not charged then leaf_file, leaf = file, row end
    end
    if leaf then
      leaf.self, leaf_file.self = leaf.self + v, leaf_file.self + v
      leaf.slots[#leaf.slots + 1] = slot
    end
  end)
  return files, sum, slots
end

return linecosts
