----------------------------------------------------------------------------
-- Names of objects in a heap snapshot, and their paths from a root.
--
-- A path is a shortest one. It begins anew at a variable: the local of a function, or the upvalue of a closure.
----------------------------------------------------------------------------

local dominators = require("sysprof.model.dominators")
local heapfile = require("sysprof.read.heapfile")
local heapgrammar = require("sysprof.base.heapgrammar")
local text = require("sysprof.base.text")

local G, L = heapgrammar, heapfile.LABELS
local KEY_BYTES = 48		-- Of a key in a path.
local FILE_BYTES = 60		-- Of a chunk's name.
local STEPS = 16		-- Of a path that are shown.

local TYPES = {
  [G.HPF_STR] = "string", [G.HPF_UPVAL] = "upvalue", [G.HPF_THREAD] = "coroutine", [G.HPF_PROTO] = "prototype",
  [G.HPF_FUNC] = "function", [G.HPF_TRACE] = "trace", [G.HPF_CDATA] = "cdata", [G.HPF_TAB] = "table",
  [G.HPF_UDATA] = "userdata",
}

-- What a root is called in a path.
local ROOTS = {
  [G.HPR_MAIN] = "main thread", [G.HPR_GLOBALS] = "_G", [G.HPR_REGISTRY] = "registry", [G.HPR_VM] = "VM",
  [G.HPR_FINALIZE] = "waiting finalizers", [G.HPR_TRACE] = "trace being compiled",
}
local OF_TYPE = { [0] = "nil", "boolean", "boolean", "lightuserdata", "string", "upvalue", "coroutine", "prototype",
		  "function", "trace", "cdata", "table", "userdata", "number" }

local heapnames = { TYPES = TYPES }

function heapnames.address(snap, i) return text.hex(snap.address[i] * 8) end

-- Returns the name of a chunk without its mark.
local function chunk_name(chunk)
  if not chunk then return "?" end
  local mark = chunk:sub(1, 1)
  if mark == "@" or mark == "=" then return text.short(chunk:sub(2), FILE_BYTES) end
  return '[string "' .. text.excerpt(chunk, FILE_BYTES) .. '"]'
end

-- Returns the place of a prototype: "app.lua:12", what is known of it, and the name of its chunk.
function heapnames.place(snap, proto)
  if proto == 0 or snap.tag[proto] ~= G.HPF_PROTO then return "?" end
  local pt = heapfile.proto(snap, proto)
  local chunk = chunk_name(pt.chunk)
  return ("%s:%.0f"):format(chunk, pt.first_line), pt, chunk
end

-- Returns a function as "(app.lua:12)", "main chunk of app.lua", or "C function 0x...".
local function func_text(snap, i, name)
  local fn = heapfile.func(snap, i)
  if fn.ffid ~= 0 then
    return name and name .. " (C function)" or fn.ffid > 1 and "builtin function" or "C function " .. text.hex(fn.code)
  end
  local place, pt, chunk = heapnames.place(snap, fn.proto)
  if pt and pt.first_line == 0 then return "main chunk of " .. chunk end
  return (name or "function") .. " (" .. place .. ")"
end

-- Returns what an object is.
function heapnames.what(snap, i)
  local tag = snap.tag[i]
  if tag == G.HPF_FUNC then return func_text(snap, i) end
  if tag == G.HPF_STR and not snap.no_strings then
    return ('string "%s"'):format(text.short(heapfile.string(snap, i), KEY_BYTES))
  end
  if tag == G.HPF_PROTO then return "prototype (" .. heapnames.place(snap, i) .. ")" end
  return TYPES[tag] or "object"
end

-- Returns the value of a key, and whether it can stand behind a dot.
local function key_text(snap, kind, key)
  if kind == G.HPK_INT then return ("%.0f"):format(key) end
  if kind == G.HPK_NUM then return ("%.14g"):format(key) end
  if kind == G.HPK_TRUE or kind == G.HPK_FALSE then return kind == G.HPK_TRUE and "true" or "false" end
  if kind == G.HPK_LIGHTUD then return "lightuserdata " .. text.hex(key) end
  local i = snap.find(key)
  if i == 0 then return "?" end
  if snap.tag[i] == G.HPF_STR and not snap.no_strings then
    local s = heapfile.string(snap, i)
    if #s <= KEY_BYTES and s:find("^[%a_][%w_]*$") then return s, true end
    return ('"%s"'):format(text.short(s, KEY_BYTES))
  end
  return TYPES[snap.tag[i]] .. " " .. heapnames.address(snap, i)
end

-- Returns the strong edges from an object to others, by object: { label=, a=, b= }. targets: list of these.
local function edges_between(snap, from, targets)
  local found, wanted = {}, {}
  for _, to in ipairs(targets) do wanted[snap.address[to]] = true end
  heapfile.edges(snap, from, function(to, is_strong, label, a, b)
    local edge = found[to]
    -- A name tells more than a number, and a value more than a key.
    if is_strong and (not edge or edge.label == L.KEY or label == L.SLOT and edge.b == "") then
      found[to] = { label = label, a = a, b = b }
    end
  end, wanted)
  return found
end

-- Returns the function of a coroutine that has a slot, or 0.
local function func_of_slot(snap, i, slot)
  for _, frame in ipairs(heapfile.thread(snap, i).frames) do
    if frame.base <= slot then return frame.func end
  end
  return 0
end

-- Returns the name of an upvalue, or nil.
local function upvalue_name(snap, i, index)
  local fn = heapfile.func(snap, i)
  if fn.ffid ~= 0 or fn.proto == 0 or snap.tag[fn.proto] ~= G.HPF_PROTO then return nil end
  local name = heapfile.proto(snap, fn.proto).upvalues[index + 1]
  return name and name ~= "" and text.short(name, KEY_BYTES) or nil
end

-- A path: a variable or another root, and an expression from there on. "" for the root _G.
local function path_text(path)
  if path.tail == "" then return path.root == "" and "_G" or path.root end
  if path.root == "" then return path.tail:sub(1, 1) == "." and path.tail:sub(2) or "_G" .. path.tail end
  return path.name and ("%s%s (%s)"):format(path.name, path.tail, path.root) or path.root .. path.tail
end

local function restart(path, root, name) path.root, path.name, path.tail = root, name, "" end

-- Returns a step that puts a text around the path so far.
local function around(before, behind)
  return function(_, path) restart(path, before .. path_text(path) .. (behind or "")) end
end

-- Each appends a step to the path so far. path.key: the last key, for functions.
local steps = {
  [L.KEY] = around("a key of "), [L.METATABLE] = around("getmetatable(", ")"),
  [L.ENVIRONMENT] = around("getfenv(", ")"), [L.CHUNK] = around("chunk name of "), [L.TRACE] = around("trace of "),
  [L.VALUE] = function() end, [L.OF_KEY] = around("value of weak key "),
}

steps[L.FIELD] = function(snap, path, _, edge)
  local key, is_plain = key_text(snap, edge.a, edge.b)
  path.tail = path.tail .. (is_plain and "." .. key or "[" .. key .. "]")
  path.key = key
end

steps[L.INDEX] = function(_, path, _, edge)
  path.tail = ("%s[%.0f]"):format(path.tail, edge.a)
  path.key = nil
end

steps[L.REFERENCE] = function(_, path, _, edge) path.tail = ("%s<%d>"):format(path.tail, edge.a) end

steps[L.PROTOTYPE] = function(snap, path, from)
  restart(path, snap.tag[from] == G.HPF_FUNC and func_text(snap, from, path.key) or "a trace")
end

steps[L.CONSTANT] = function(snap, path, from)
  local is_trace = snap.tag[from] == G.HPF_TRACE
  if is_trace or not path.root:find("^a constant of ") then
    restart(path, "a constant of " .. (is_trace and "a trace" or path_text(path)))
  end
end

steps[L.UPVALUE] = function(snap, path, from, edge)
  local name = upvalue_name(snap, from, edge.a)
  restart(path, ("upvalue %s of %s"):format(name and ("'%s'"):format(name) or edge.a + 1,
    func_text(snap, from, path.key)), name)
end

steps[L.SLOT] = function(snap, path, from, edge)
  local func, name = func_of_slot(snap, from, edge.a), edge.b ~= "" and text.short(edge.b, KEY_BYTES) or nil
  restart(path, (name and ("local '%s'"):format(name) or "a stack slot") ..
	  (func ~= 0 and snap.tag[func] == G.HPF_FUNC and " of " .. func_text(snap, func) or ""), name)
end

-- Returns an object that names objects of a snapshot.
function heapnames.new(snap)
  local self = {}
  local before = dominators.nearest(snap.objects + 1, snap.first, snap.to)
  local roots, edge_of = {}, {}
  for _, root in ipairs(snap.roots) do roots[root.object] = roots[root.object] or root end

  local function root_text(i)
    local root = roots[i]
    if not root then return "a string that the VM keeps" end
    if root.kind == G.HPR_GLOBALS then return "" end
    if root.kind == G.HPR_TYPE then return ("metatable of type %s"):format(OF_TYPE[root.index] or "?") end
    return ROOTS[root.kind] or "root"
  end

  -- Returns the objects on the path to an object, itself the last one: at most so many at each end; and how many are
  -- left out. nil: no root reaches it.
  function self.chain(i, most)
    if before[i] == i then return nil end
    local n, at = 0, i
    while at ~= 0 do n, at = n + 1, before[at] end
    local list, left_out = {}, math.max(0, n - 2 * most)
    at = i
    for k = n, 1, -1 do
      if k <= most then list[k] = at elseif k > most + left_out then list[k - left_out] = at end
      at = before[at]
    end
    return list, left_out, most
  end

  -- Reads the edges on the paths to a list of objects, each holder once.
  function self.expect(objects)
    local targets, asked = {}, {}
    for _, i in ipairs(objects) do
      local list, left_out, most = self.chain(i, STEPS)
      for k = 2, list and #list or 0 do
	local to, from = list[k], list[k - 1]
	if not edge_of[to] and not asked[to] and not (left_out > 0 and k == most + 1) then
	  asked[to] = true
	  targets[from] = targets[from] or {}
	  table.insert(targets[from], to)
	end
      end
    end
    for from, list in pairs(targets) do
      local found = edges_between(snap, from, list)
      for _, to in ipairs(list) do edge_of[to] = found[to] or { label = L.OF_KEY } end
    end
  end

  -- Returns the path to an object as a text; nil if no root reaches it. each(object, path) is called for each step.
  function self.path(i, each)
    local list, left_out, most = self.chain(i, STEPS)
    if not list then return nil end
    self.expect { i }
    local path = { root = root_text(list[1]), tail = "" }
    if each then each(list[1], path_text(path)) end
    for k = 2, #list do
      if left_out > 0 and k == most + 1 then
	restart(path, ("... %.0f steps on from %s"):format(left_out, path_text(path)))
      else
	local edge, from = edge_of[list[k]], list[k - 1]
	steps[edge.label](snap, path, from, edge)
      end
      if each then each(list[k], path_text(path)) end
    end
    return path_text(path)
  end

  return self
end

return heapnames
