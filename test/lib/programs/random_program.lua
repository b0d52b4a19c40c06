----------------------------------------------------------------------------
-- Generator of Lua programs in which each function has exactly one legal call stack.
--
-- The functions form a tree. A function has one caller, which calls it in one way: directly,
-- by pcall, as a metamethod, in a coroutine, by a callback from C and others. A tail call
-- takes the caller off the stack. So the stack of a sample follows from its innermost
-- function alone, and so does the line of each caller. A seed gives the same program on each
-- machine.
----------------------------------------------------------------------------

local random_program = {
  FILE = "p.lua",	-- Name of the program's file, which runs in its own folder.
}

local FUNCTIONS = 60
local CHILDREN_MAX = 4
local DEPTH_MAX = 14
local RECURSION = 3	-- Calls of a recursive function by itself.
local YIELDS = 2

-- -- Ways to call ----------------------------------------------------------

-- A way, NAME being the function and OWN a name for what belongs to it:
--   call     in the caller's body
--   setup    behind the function's definition
--   sig, ret parameters and last statement of the function ("a", "return x")
--   between  builtins that stand between caller and function
--   yields   statement that yields, in the function's own body
--   free     the caller may end by a tail call: nobody uses what it returns
--   not_jit  plain LuaJIT hangs with it in compiled code now and then
--   leaf     the function calls no other one: an error below a hook makes the VM forget that a
--            hook runs, and call it again
--   nojit    the caller must not be compiled: a callback in compiled code is an error
local ways = {
  direct = { call = "NAME(x)", free = true },
  method = { setup = "local OWN = { m = NAME }", call = "OWN:m(x)", free = true },
  field = { setup = "local OWN = { m = { NAME } }", call = "OWN.m[1](x)", free = true },
  vararg = { sig = "...", call = "NAME(1, x, nil)", free = true },
  pcall = { call = "pcall(NAME, x)", between = { "pcall" }, free = true },
  pcall_error = { call = "pcall(NAME, x)", between = { "pcall" }, ret = "error(false)" },
  xpcall = { call = "xpcall(NAME, tostring, x)", between = { "xpcall" }, free = true },
  xpcall_error = { call = "xpcall(NAME, type, x)", between = { "xpcall" },
		   ret = "error(false)" },
  handler = { call = "xpcall(error, NAME, false)", between = { "xpcall", "error" },
	      free = true },
  wrap = { call = "coroutine.wrap(NAME)(x)", between = { "coroutine" }, free = true },
  resume = { call = "coroutine.resume(coroutine.create(NAME), x)",
	     between = { "coroutine" }, free = true },
  resume_error = { call = "coroutine.resume(coroutine.create(NAME))",
		   between = { "coroutine" }, ret = "error(false)" },
  yields = { call = ("local OWN = coroutine.wrap(NAME) for _ = 0, %d do OWN() end")
		    :format(YIELDS), yields = "coroutine.yield(x)",
	     between = { "coroutine" }, free = true },
  yields_in_pcall = { call = ("local OWN = coroutine.create(NAME) " ..
		       "for _ = 0, %d do coroutine.resume(OWN) end"):format(YIELDS),
		      yields = "pcall(coroutine.yield, x)", between = { "coroutine" },
		      free = true },
  iterator = { call = "for _ in NAME, 2, 0 do x = x + 1 end", sig = "limit, i",
	       ret = "if i < limit then return i + 1 end" },
  wrap_iterator = { call = "for _ in coroutine.wrap(NAME) do x = x + 1 end",
		    yields = "coroutine.yield(x)", ret = "return nil",
		    between = { "coroutine" } },
  sort = { call = "table.sort({ 3, 1, 2 }, NAME)", sig = "a, b", ret = "return a < b",
	   between = { "table.sort" } },
  gsub = { call = "string.gsub('ab', '.', NAME)", ret = "return nil",
	   between = { "string.gsub" } },
  gsub_index = { setup = "local OWN = setmetatable({}, { __index = NAME })",
		 call = "string.gsub('ab', '.', OWN)", ret = "return nil",
		 between = { "string.gsub" } },
  foreach = { call = "table.foreach({ 1, 2 }, NAME)", ret = "return nil",
	      between = { "foreach" }, not_jit = true },
  foreachi = { call = "table.foreachi({ 1, 2 }, NAME)", ret = "return nil",
	       between = { "foreachi" }, not_jit = true },
  tostring = { setup = "local OWN = setmetatable({}, { __tostring = NAME })",
	       call = "tostring(OWN)", ret = "return 'x'", between = { "tostring" } },
  load = { call = "assert(load(OWN, '=NAME'))()", chunk = true, free = true },
  loaded = { setup = "local NAME = assert(loadstring(OWN, '=NAME'))",
	     call = "NAME()", chunk = true, free = true },
  load_reader = { call = "load(NAME)", ret = "return nil", between = { "load" } },
  closure = { call = "NAME(x)", inner = true, free = true },
  tail = { call = "return NAME(x)", tail = true },
  tail_pcall = { call = "return pcall(NAME, x)", between = { "pcall" }, tail = true },
  recursive = { call = ("NAME(%d)"):format(RECURSION), sig = "n", recursion = RECURSION,
		free = true },
  ffi_callback = { setup = "local OWN = ffi.cast('int (*)(int)', NAME)", call = "OWN(1)",
		   between = { "cdata.__call" },
		   ret = "return 0", nojit = true },
  ffi_qsort = { setup = "local OWN = ffi.cast('int (*)(const int *, const int *)', NAME)",
		call = "ffi.C.qsort(ffi.new('int[3]', 3, 1, 2), 3, 4, OWN)", sig = "a, b",
		between = { "cdata.__call" },
		ret = "return a[0] - b[0]", nojit = true },
  metatype_call = { setup = "local OWN = ffi.metatype(ffi.typeof('struct { int x; }'), " ..
			    "{ __call = NAME })()", call = "OWN(x)", between = { "cdata.__call" } },
  metatype_add = { setup = "local OWN = ffi.metatype(ffi.typeof('struct { int x; }'), " ..
			   "{ __add = NAME })()", call = "local _ = OWN + 1",
		   between = { "cdata.__add" } },
  metatype_index = { setup = "local OWN = ffi.metatype(ffi.typeof('struct { int x; }'), " ..
			     "{ __index = NAME })()", call = "local _ = OWN.y",
		     between = { "cdata.__index" } },
  meta_len = { setup = "local OWN = newproxy(true) getmetatable(OWN).__len = NAME",
	       call = "local _ = #OWN" },
  wrap_without_parameters = { call = "coroutine.wrap(NAME)()", sig = "", between = { "coroutine" },
			      free = true },
  weak_index = { setup = "local OWN = setmetatable({}, { __index = NAME, __mode = 'kv' })",
		 call = "OWN[{}] = {} local _ = OWN.k" },
  hook = { call = "debug.sethook(NAME, '', 1) x = x + 1 debug.sethook()",
	   leaf = true },
  -- The collection that the caller asks for finalizes the object: no other one comes before.
  finalizer = { setup = "local OWN = newproxy(true) getmetatable(OWN).__gc = NAME",
		call = "newproxy(OWN) collectgarbage()", between = { "collectgarbage" }, free = true },
  ffi_gc = { call = "ffi.gc(ffi.new('int[1]'), NAME) collectgarbage()",
	     between = { "collectgarbage" }, free = true },
  metatype_gc = { setup = "local OWN = ffi.metatype(ffi.typeof('struct { int x; }'), " ..
			  "{ __gc = NAME })", call = "OWN() collectgarbage()",
		  between = { "collectgarbage" }, free = true },
  meta_index_chain = { setup = "local OWN = setmetatable({}, { __index = " ..
			       "setmetatable({}, { __index = NAME }) })",
		       call = "local _ = OWN.k" },
}

for event, call in pairs {
  index = "local _ = OWN.k", newindex = "OWN.k = x", call = "OWN(x)", unm = "local _ = -OWN",
  add = "local _ = OWN + 1", sub = "local _ = 1 - OWN", mul = "local _ = OWN * OWN",
  div = "local _ = OWN / 2", mod = "local _ = OWN % 3", pow = "local _ = OWN ^ 2",
  concat = "local _ = OWN .. 'x'", lt = "local _ = OWN < OWN", le = "local _ = OWN <= OWN",
} do
  ways["meta_" .. event] = { call = call, free = true,
    setup = ("local OWN = setmetatable({}, { __%s = NAME })"):format(event) }
end
ways.meta_eq = { call = "local _ = OWN[1] == OWN[2]",
  setup = "local OWN = { { __eq = NAME } } OWN[2] = setmetatable({}, OWN[1]) " ..
	  "OWN[1] = setmetatable({}, OWN[1])" }

-- With the semantics of Lua 5.2 (LUAJIT_ENABLE_LUA52COMPAT), LuaJIT calls more metamethods of tables. pairs and ipairs
-- leave the stack by a tail call.
if select(2, coroutine.running()) then
  for name, way in pairs {
    len_of_table = { "len", call = "local _ = #OWN", free = true },
    lt_of_number = { "lt", call = "local _ = OWN < 1", free = true },
    pairs = { "pairs", call = "for _ in pairs(OWN) do x = x + 1 end", ret = "return next, {}" },
    ipairs = { "ipairs", call = "for _ in ipairs(OWN) do x = x + 1 end", ret = "return next, {}" },
  } do
    way.setup = ("local OWN = setmetatable({}, { __%s = NAME })"):format(way[1])
    ways["meta_" .. name] = way
  end
end

local way_names = {}
for name in pairs(ways) do way_names[#way_names + 1] = name end
table.sort(way_names)

-- Statements that take time.
local WORK = {
  "for i = 1, N do x = x + i % 7 end",
  "for i = 1, N do x = x + #tostring(i) end",
  "local t = {} for i = 1, N do t[i] = i end x = x + #t",
  "for i = 1, N do x = x + math.floor(i / 3) end",
  "for i = 1, N do x = x + #string.sub('abcdef', i % 4) end",
  "local s = '' for i = 1, N / 8 do s = s .. i end x = x + #s",
  "for i = 1, N do local v = { i } x = x + v[1] % 5 end",
}

-- Statements that wait, in the profiles of waits: at each seventh visit, so often at most.
local VISITS_MAX = 7 * 1500
local WAITS = { "ffi.C.usleep(2000)", "ffi.C.poll(nil, 0, 2)", "pcall(ffi.C.usleep, 2000)" }
for i, wait in ipairs(WAITS) do
  WAITS[i] = ("visits = visits + 1 if visits %% 7 == 0 and visits < %d then %s end"):format(VISITS_MAX, wait)
end

-- -- The tree --------------------------------------------------------------

-- A generator of numbers from 1 to n.
local function generator(seed)
  local state = seed % 2147483646 + 1
  return function(n)
    state = (state * 16807) % 2147483647
    return state % n + 1
  end
end

local function pick_way(random, parent, jit_on)
  while true do
    local name = way_names[random(#way_names)]
    local way = ways[name]
    if not (way.tail and (parent.tail_child or not parent.returns_freely)) and
       not (way.not_jit and jit_on) then
      return name, way
    end
  end
end

-- Adds a function below a parent.
local function add_function(list, random, parent, jit_on)
  local name, way = pick_way(random, parent, jit_on)
  local node = { id = #list + 1, parent = parent, depth = parent.depth + 1, way_name = name,
		 way = way, children = {}, returns_freely = way.free or false }
  node.name = "f" .. node.id
  -- A tail call returns to the parent's caller.
  if way.tail then
    parent.tail_child, node.returns_freely = node, true
  end
  if way.nojit then parent.nojit = true end
  list[node.id], parent.children[#parent.children + 1] = node, node
end

local function make_tree(random, jit_on)
  local root = { id = 1, name = "f1", depth = 1, way = ways.direct, way_name = "direct",
		 children = {}, returns_freely = true }
  local list = { root }
  while #list < FUNCTIONS do
    -- Of two functions the younger one: trees become deep.
    local parent = list[math.max(random(#list), random(#list))]
    if #parent.children < CHILDREN_MAX and parent.depth < DEPTH_MAX and not parent.way.leaf then
      add_function(list, random, parent, jit_on)
    end
  end
  return list
end

-- -- Stacks ----------------------------------------------------------------

local function copy(list)
  local out = {}
  for i, v in ipairs(list) do out[i] = v end
  return out
end

-- Sets the ids below a function on the stack, and what may stand between the last of these
-- and the function.
local function set_stack(node)
  local up, way = node.parent, node.way
  local below, between = {}, {}
  if up then
    below = copy(up.below)
    for _ = 1, (up.way.recursion or 0) + 1 do below[#below + 1] = up.id end
    if way.tail then
      below[#below] = nil
      for name in pairs(up.between) do between[name] = true end
    end
  end
  for _, name in ipairs(way.between or {}) do between[name] = true end
  node.below, node.between = below, between
end

-- -- Text ------------------------------------------------------------------

-- What a chunk of its own calls is global, the rest is local.
local function fill(node, text)
  if node.is_global then text = text:gsub("local OWN", "OWN"):gsub("local NAME", "NAME") end
  return (text:gsub("NAME", node.name):gsub("OWN", "own" .. node.id))
end

local write_function

-- Writes the statements of a function. out: the lines of its chunk.
local function write_body(node, out, random)
  local way = node.way
  local function put(text) out[#out + 1] = text end
  local function work()
    local n = random(#WORK + (out.waits and #WAITS or 0))
    put("  do " .. (WORK[n] or WAITS[n - #WORK]):gsub("N", tostring(20 + random(60))) .. " end")
  end
  put(way.sig == "..." and "  local x = select('#', ...)" or "  local x = 1")
  work()
  node.again = #out + 1
  if way.recursion then put(("  if n > 0 then %s(n - 1) return end"):format(node.name)) end
  for _ = 1, way.yields and YIELDS or 0 do
    put("  " .. way.yields)
    work()
  end
  for _, c in ipairs(node.children) do
    if c.way.inner then write_function(c, out, random) end
    if c ~= node.tail_child then
      put("  do " .. fill(c, c.way.call) .. " end")
      c.line = #out
      if random(2) == 1 then work() end
    end
  end
  local last = node.tail_child
  put("  " .. (last and fill(last, last.way.call) or way.ret or "return x"))
  if last then last.line = #out end
end

function write_function(node, out, random)
  node.chunk, node.first = out.chunk, #out + 1
  out[#out + 1] = ("%sfunction %s(%s)"):format(node.is_global and "" or "local ", node.name,
						node.way.sig or "a")
  write_body(node, out, random)
  out[#out + 1] = "end"
  node.last = #out
end

-- Writes a function that is a chunk of its own, as the text that is loaded.
local function write_chunk(node, out, random)
  local own = { chunk = node.name, waits = out.waits }
  write_body(node, own, random)
  node.chunk, node.first, node.last = own.chunk, 0, #own
  local text = fill(node, "local OWN = ") .. ("%q"):format(table.concat(own, "\n"))
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do out[#out + 1] = line end
end

-- Writes a function behind those that it calls. in_chunk: its caller is within a chunk.
local function write_all(node, out, random, in_chunk)
  local way = node.way
  local holds_chunk = way.chunk or way.inner and in_chunk
  node.is_global = in_chunk and not way.inner
  for _, c in ipairs(node.children) do write_all(c, out, random, holds_chunk or false) end
  if way.inner then return end
  if way.chunk then write_chunk(node, out, random) else write_function(node, out, random) end
  if way.setup then out[#out + 1] = fill(node, way.setup) end
  if node.nojit and not way.chunk then out[#out + 1] = ("jit.off(%s)"):format(node.name) end
end

local HEAD = [[
ffi = require("ffi")
ffi.cdef "void qsort(void *, size_t, size_t, int (*)(const int *, const int *));"
ffi.cdef "int usleep(unsigned); int poll(void *, unsigned long, int);"
visits = 0
]]

-- Takes its samples and ends.
local TAIL = [[
local samples, path, seconds = tonumber(arg[1]), arg[2], tonumber(arg[3])
assert(misc.sysprof.start{ mode = "C", EVENT, path = path })
local start = os.time()
repeat f1() until misc.sysprof.report().samples >= samples or os.time() - start > seconds
assert(misc.sysprof.stop())
]]

-- -- API -------------------------------------------------------------------

-- What is profiled: options of the start.
local EVENTS = {
  ticks = 'clock = "wall-signal", interval = 0.1',
  allocations = 'clock = "alloc", period = 512',
  waits = 'clock = "offcpu/threshold=500000/"',
}

-- Returns the text of a program and the list of its functions: { id, name, way_name, chunk,
-- first, last: lines; line: of the call in the caller; again: of the call by itself; below: ids
-- on the stack below it; between: set of builtins between it and the last of these;
-- way.recursion }. jit_on: code is compiled. event: "ticks", "allocations" or "waits".
-- The program's arguments are a number of samples, the file of the profile and the most
-- seconds.
function random_program.make(seed, jit_on, event)
  local random = generator(seed)
  local list = make_tree(random, jit_on)
  for _, node in ipairs(list) do set_stack(node) end
  local out = { chunk = random_program.FILE, waits = event == "waits" }
  for line in HEAD:gmatch("[^\n]+") do out[#out + 1] = line end
  write_all(list[1], out, random, false)
  return table.concat(out, "\n") .. "\n" .. TAIL:gsub("EVENT", EVENTS[event]), list
end

return random_program
