----------------------------------------------------------------------------
-- Event loops: which waits of a thread are idle, and which block its loop.
--
-- A wait is idle if the thread sleeps in an event loop's own wait. Then between the loop's
-- function and the system call stands no function that the loop has called back. Lua may have
-- called the loop. Each other wait below Lua code blocks.
-- A loop inside a callback of another loop blocks that one. A loop that the host runs for a
-- call from Lua blocks the host.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local filters = require("sysprof.show.filters")
local join = require("sysprof.show.join")
local places = require("sysprof.names.places")
local sort = require("sysprof.base.sort")
local symbols = require("sysprof.names.symbols")
local syscalls = require("sysprof.names.syscalls")
local text = require("sysprof.base.text")
local work = require("sysprof.names.work")

local loops = {}

loops.IDLE, loops.BLOCKING, loops.NO_LUA, loops.UNKNOWN = "idle", "blocking", "without Lua", "unknown"
loops.KINDS = { loops.IDLE, loops.BLOCKING, loops.NO_LUA, loops.UNKNOWN }

local function set_of(names)
  local set = {}
  for name in names:gmatch("%S+") do set[name] = true end
  return set
end

-- Functions that wait for events, of nginx, libuv, libev, libevent, GLib, wrk. Programs without
-- symbols still have the exported ones.
local FUNCTIONS = set_of [[
  ngx_epoll_process_events ngx_process_events_and_timers uv__io_poll uv_run ev_run epoll_poll
  event_base_loop epoll_dispatch g_main_loop_run g_main_context_iteration aeProcessEvents
]]
-- Functions of hosts that run the loop until something has happened: of Neovim.
local OF_HOST = set_of "loop_poll_events"
-- System calls that wait for events. The last one goes on with one of them.
local WAITS = set_of [[
  epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 io_getevents io_uring_enter restart_syscall
]]

local CFUNC, FFUNC, HOST, LFUNC = G.SPF_FRAME_CFUNC, G.SPF_FRAME_FFUNC, G.SPF_FRAME_HOST, G.SPF_FRAME_LFUNC
local IN_LUA = { [CFUNC] = true, [FFUNC] = true, [LFUNC] = true }
local IS_LUA = { [LFUNC] = true }

local DIRECT = 16	-- Functions between a loop and its system call.
local NAMED = 3		-- Functions that a sentence names.

-- -- Frames ----------------------------------------------------------------

-- A finder knows the names of frames. user: whether a name matches a pattern of the user. The table of
-- lines shows current lines, other formats those of definitions: patterns match both, whatever is shown.
local function new_finder(view, patterns)
  local user, matched = {}, {}
  for i, pattern in ipairs(patterns or {}) do
    user[i], matched[i] = filters.matcher(pattern), { pattern = pattern, names = {}, seen = {} }
  end
  return { view = view, all = view.profile.stacks, place_of = places.new(view.profile), user = user,
	   by_line = #user > 0 and symbols.new(view.profile, true) or nil, named = {},	-- By part, whether the user means it.
	   matched = matched,	-- By pattern: see loops.kinds().
	   found = {} }	-- Names of loops that threads were idle in.
end

-- Returns SPF_FRAME_* of a part of a joined stack, nil of a marker.
local function kind_of(f, part)
  return type(part) == "number" and f.all.kind[math.abs(part)] or nil
end

-- Returns the name of a C function without the compiler's suffix, nil of others and nameless ones.
local function c_name(f, part)
  local kind, syms = kind_of(f, part), f.view.symbols
  if kind ~= HOST and kind ~= CFUNC then return nil end
  local entry = kind == HOST and syms:name(part) or syms:symbol(f.all.payload[part])
  if entry.kind == "unknown" then return nil end
  return entry.text:match("^[^.]+") or entry.text
end

-- Markers, waits, and work of the VM are no functions.
local IS_FUNCTION = { [CFUNC] = true, [FFUNC] = true, [HOST] = true, [LFUNC] = true }

-- A pattern of the user matches a function.
local function note_match(its, name, is_of_lua)
  if its.seen[name] then return end
  its.seen[name], its.names[#its.names + 1] = true, name
  its.has_lua = its.has_lua or is_of_lua
end

local function is_named_by_user(f, part)
  if #f.user == 0 or not IS_FUNCTION[kind_of(f, part)] then return false end
  local is_named = f.named[part]
  if is_named == nil then
    local name, with_line = f.view.symbols:name(part).text, f.by_line:name(part).text
    is_named = false
    for i, matches in ipairs(f.user) do
      if matches(name) or matches(with_line) then
	is_named = true
	note_match(f.matched[i], name, IN_LUA[kind_of(f, part)])
      end
    end
    f.named[part] = is_named
  end
  return is_named
end

local function is_loop(f, part)
  local name = c_name(f, part)
  return name and (FUNCTIONS[name] or OF_HOST[name]) or is_named_by_user(f, part)
end

-- Returns the number of the module of a frame, and the name of its file.
local function module_of(f, part)
  local number = f.place_of(part).module
  local path = number and f.view.profile.modules[number].path or ""
  return number, text.base_name(path)
end

local function is_in_c_library(file)
  return file:find("^libc[.-]") ~= nil or file:find("^libpthread[.-]") ~= nil or file:find("^ld%-musl%-") ~= nil
end

-- Whether a function of the loop has only passed the call on to the kernel: a wrapper of the C
-- library, or part of the loop's own library. Programs hold other functions as well: one that
-- has a name is not known to be part of the loop.
local function passes_on(f, part, loop_module)
  local number, file = module_of(f, part)
  local name = c_name(f, part)
  if is_in_c_library(file) then return true end
  if name and (WAITS[name:match("^_*(.*)$")] or name:find("syscall_c[ap]")) then return true end
  return number ~= nil and number == loop_module and (not name or file:find("%.so[.%d]*$") ~= nil)
end

-- -- Waits -----------------------------------------------------------------

-- Returns the place in a stack of the innermost function of a kind in a set, or 0.
local function innermost(f, parts, n, kinds)
  for i = n, 1, -1 do
    if kinds[kind_of(f, parts[i])] then return i end
  end
  return 0
end

-- Returns the place in a stack of the loop that waits itself, or nil. lua: place of the innermost Lua
-- function. A loop may have called back Lua functions that are missing.
local function find_loop(f, parts, n, lua, is_event_wait)
  for i = n - 1, math.max(lua, 1), -1 do
    local part = parts[i]
    if join.is_of_lua(part) then return nil end
    if is_named_by_user(f, part) then return i end
    local name = is_event_wait and c_name(f, part)
    if name and FUNCTIONS[name] then
      local own, direct = module_of(f, part), n - 1 - i <= DIRECT
      for k = i + 1, direct and n - 1 or i do
	direct = direct and kind_of(f, parts[k]) == HOST and passes_on(f, parts[k], own)
      end
      if direct then return i end
    end
  end
end

-- Whether a loop in a stack runs for Lua code that a host or another loop waits for.
local function keeps_waiting(f, parts, loop, lua)
  if lua == 0 then return false end
  for i = lua + 1, loop do
    if OF_HOST[c_name(f, parts[i])] then return true end
  end
  -- A loop in Lua may consist of several functions.
  local i = lua
  while i > 0 and is_named_by_user(f, parts[i]) do i = i - 1 end
  for k = 1, i do
    if is_loop(f, parts[k]) then return true end
  end
  return false
end

-- Whether the frames leafward of a place lack some that could be a loop. Of C functions, a builtin
-- calls none, except for the FFI.
local function hides_loop(f, parts, n, lua)
  for i = n - 1, lua + 1, -1 do
    local part = parts[i]
    if type(part) == "string" and part ~= join.COROUTINE then
      local below = parts[i - 1]
      return join.is_of_lua(part) or kind_of(f, below) ~= FFUNC or f.view.symbols:name(below).text == "cdata.__call"
    end
  end
  return false
end

-- Whether a stack has Lua frames, true or false; nil if they may be missing.
local function has_lua(f, parts, n)
  if innermost(f, parts, n, IN_LUA) > 0 then return true end
  for i = 1, n do
    if join.is_of_lua(parts[i]) then return nil end
  end
  return false
end

local UNSEEN = { [G.SPF_WORK_SHORT] = true, [G.SPF_WORK_UNSEEN] = true }
local SLEEP = { [G.SPF_WORK_WAIT] = true, [G.SPF_WORK_FAULT] = true }

-- Returns one of loops.KINDS; nil if the thread does not wait.
local function classify(f, parts, n)
  local leaf, all = parts[n], f.all
  if kind_of(f, leaf) ~= G.SPF_FRAME_WORK then return nil end
  local what, arg = all.extra[leaf], all.payload[leaf]
  if UNSEEN[what] then return work.is_wait(what, arg) and loops.UNKNOWN or nil end
  if not SLEEP[what] then return nil end
  local lua = innermost(f, parts, n, IS_LUA)
  local is_event_wait = what == G.SPF_WORK_WAIT and arg > 0 and WAITS[syscalls.name(arg - 1)]
  local loop = find_loop(f, parts, n, lua, is_event_wait)
  if loop and not keeps_waiting(f, parts, loop, lua) then
    f.found[f.view.symbols:name(parts[loop]).text] = true
    return loops.IDLE
  elseif not loop and (is_event_wait or #f.user > 0) and hides_loop(f, parts, n, lua) then
    return loops.UNKNOWN
  end
  local in_lua = has_lua(f, parts, n)
  if in_lua == nil then return loops.UNKNOWN end
  return in_lua and loops.BLOCKING or loops.NO_LUA
end

-- -- API -------------------------------------------------------------------

-- Returns the kinds of waits by number of slot, see loops.KINDS, a sorted list of the names of the loops in which
-- threads were idle, and for each pattern { pattern =, names = of the functions that match, has_lua = }. view: a view
-- that shows whole stacks, without lines. patterns: see sysprof.show.filters; functions whose names match one are
-- loops, too. There, any sleep without a Lua function in between is idle.
function loops.kinds(view, patterns)
  local f, kinds, names = new_finder(view, patterns), {}, {}
  view:each_joined(function(parts, n, _, slot)
    kinds[slot] = classify(f, parts, n)
    for i = 1, #f.user > 0 and n or 0 do is_named_by_user(f, parts[i]) end
  end, true)
  for name in pairs(f.found) do names[#names + 1] = name end
  sort(names)
  for _, its in ipairs(f.matched) do sort(its.names) end
  return kinds, names, f.matched
end

-- Returns the sum of the values of a view in which a loop has called back a Lua function. patterns: as above.
function loops.in_callbacks(view, patterns)
  local f, sum = new_finder(view, patterns), 0
  view:each_joined(function(parts, n, value)
    local in_loop = false
    for i = 1, n do
      if in_loop and IS_LUA[kind_of(f, parts[i])] then
	sum = sum + value
	return
      end
      in_loop = in_loop or is_loop(f, parts[i]) or false
    end
  end)
  return sum
end

-- Returns a sentence on each pattern: which functions it matches.
function loops.match_texts(matched)
  local list = {}
  for i, its in ipairs(matched) do
    local option, names = "--loop=" .. text.clean(its.pattern), text.listed(its.names, 1, NAMED)
    if #its.names == 0 then
      list[i] = ("warning: %s matches no function that waits or has called one"):format(option)
    elseif its.has_lua then
      list[i] = ("%s matches %s, Lua code: all its own sleeps are idle; a C function is exacter"):format(option, names)
    else
      list[i] = ("%s matches %s"):format(option, names)
    end
  end
  return list
end

-- Returns the innermost Lua function of a stack and what that has called: parts of the joined stack. Without a
-- Lua function, the first is what the host has called.
function loops.line(view, parts, n)
  local f = { view = view, all = view.profile.stacks }
  local at = innermost(f, parts, n, IS_LUA)
  if at == 0 then at = innermost(f, parts, n, IN_LUA) end
  at = math.max(at, 1)
  return parts[at], at + 1 < n and parts[at + 1] or nil
end

return loops
