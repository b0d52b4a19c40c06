----------------------------------------------------------------------------
-- Stacks of waits from one line of text, for tests of event loops.
--
-- A line lists what the joined stack shows, root first: "main > lua f > uv_run@libuv.so.1 >
-- epoll_wait@libc.so.6 > [epoll_wait]". Items are separated by " > ":
--   NAME, NAME@MODULE   a C function on the host side; without MODULE, of the program; @MODULE has no symbol
--   lua NAME            a Lua function of a.lua; each name has lines of its own
--   compiled NAME       the same, in compiled code
--   builtin NAME        a builtin; cfunc NAME@MODULE: a C function on the Lua side only
--   called NAME@MODULE  a C function that Lua calls, on both sides
--   resume, enter       a coroutine begins; C code that is not shown calls Lua
--   host broken, host cut, lua broken, lua cut, lua outside     markers
--   gc                  work of the VM
--   [CALL], [fault], [short] and so on, the last item: what the thread waits for
----------------------------------------------------------------------------

local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F = B.F

local wait_stacks = {}
local methods = {}
local mt = { __index = methods }

local PROGRAM = "program"
local MODULE_SIZE, FUNCTION_SIZE = 0x1000000, 0x100

-- Numbers of system calls, plus 1.
local CALLS = { read = 1, poll = 8, pread64 = 18, select = 24, nanosleep = 36, wait4 = 62, futex = 203,
  io_getevents = 209, restart_syscall = 220, epoll_wait = 233, pselect6 = 271, ppoll = 272, epoll_pwait = 282,
  epoll_wait_old = 216, io_uring_enter = 427, epoll_pwait2 = 442 }

local OTHERS = {
  fault = { G.SPF_WORK_FAULT, 0 }, ["odd fault"] = { G.SPF_WORK_FAULT, 233 }, ready = { G.SPF_WORK_READY, 0 }, short = { G.SPF_WORK_SHORT, 0 },
  unknown = { G.SPF_WORK_WAIT, 0 }, late = { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_LATE }, busy = { G.SPF_WORK_BUSY, 0 },
  many = { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_MANY }, ["no tick"] = { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK },
  later = { 40, 7 },
}

-- Adds stacks to a stream of the builder.
function wait_stacks.new(b)
  return setmetatable({ b = b, modules = 0, by_module = {}, address = {}, fids = 0, fid = {}, ffids = 0, ffid = {},
			stacks = 0, known = {} }, mt)
end

-- Returns the address of a C function, and defines it.
function methods:code(item)
  if self.address[item] then return self.address[item] end
  local name, path = item:match("^([^@]*)@?(.*)$")
  path = path == "" and PROGRAM or path
  local module = self.by_module[path]
  if not module then
    self.modules = self.modules + 1
    module = { first = self.modules * MODULE_SIZE, functions = 0 }
    self.by_module[path] = module
    if path ~= "none" then
      self.b:module(module.first, module.first + MODULE_SIZE, module.first, "/lib/" .. path)
    end
  end
  module.functions = module.functions + 1
  local at = module.first + module.functions * FUNCTION_SIZE
  if name ~= "" then self.b:hsym(at, at, name) end
  self.address[item] = at
  return at
end

function methods:lua(name)
  if not self.fid[name] then
    self.fids = self.fids + 1
    self.fid[name] = self.fids
    self.b:lfunc(self.fids, self.fids * 10, "@a.lua", name, self.fids * 10 + 9)
  end
  return F.lfunc(self.fid[name], self.fid[name] * 10 + 1)
end

function methods:builtin(name)
  if not self.ffid[name] then
    self.ffids = self.ffids + 1
    self.ffid[name] = self.ffids
    self.b:ffunc(self.ffids, name)
  end
  return F.ffunc(self.ffid[name])
end

local function wait_frame(name)
  local other = OTHERS[name]
  if other then return F.work(other[1], other[2]) end
  return F.work(G.SPF_WORK_WAIT, assert(CALLS[name] or tonumber(name), name))
end

-- Returns the ids of the Lua side and the host side of a line.
function methods:stack(line)
  if self.known[line] then return self.known[line][1], self.known[line][2] end
  local lua, host, in_lua = {}, {}, false
  local function put(list, frame) list[#list + 1] = frame end
  local function enter(boundary)
    put(host, F.vm)
    put(lua, boundary)
    in_lua = true
  end
  local put_kind = {
    lua = function(name) put(lua, self:lua(name)) end,
    compiled = function(name)
      put(lua, self:lua(name))
      put(lua, F.trace(1, 1))
    end,
    builtin = function(name) put(lua, self:builtin(name)) end,
    cfunc = function(name) put(lua, F.cfunc(self:code(name))) end,
    called = function(name)
      put(lua, F.cfunc(self:code(name)))
      put(host, F.host(self:code(name)))
      in_lua = false
    end,
  }
  for item in (line .. " > "):gmatch("(.-) > ") do
    local kind, name = item:match("^(%l+) (.+)$")
    local wait = item:match("^%[(.*)%]$")
    if wait then
      put(lua, wait_frame(wait))
    elseif item == "resume" or item == "enter" then
      enter(item == "resume" and F.resume or F.cbound)
    elseif item == "gc" then
      put(lua, F.work(G.SPF_WORK_GC, 1))
    elseif item == "lua outside" then
      put(lua, F.broken(G.SPF_BROKEN_NOT_VM))
    elseif item == "lua cut" or item == "lua broken" then
      if not in_lua then put(host, F.vm) end
      put(lua, item == "lua cut" and F.cut(7, in_lua and 0 or 1) or F.broken(G.SPF_BROKEN_CHAIN))
      in_lua = true
    elseif put_kind[kind] and kind ~= "host" then
      if not in_lua then enter(F.cbound) end
      put_kind[kind](name)
    else
      put(host, item == "host cut" and F.cut(5, 0) or item == "host broken" and F.broken(G.SPF_BROKEN_NO_CFI) or
		F.host(self:code(item)))
      in_lua = false
    end
  end
  local ids = {}
  for i, side in ipairs { lua, host } do
    self.stacks, ids[i] = self.stacks + 1, #side > 0 and self.stacks + 1 or 0
    if ids[i] > 0 then self.b:stack(ids[i], side) end
  end
  self.known[line] = ids
  return ids[1], ids[2]
end

-- Adds a sample of a wait of so many milliseconds. waits: 1, or 0 of a later part.
function methods:wait(line, ms, waits, event, state)
  local lua, host = self:stack(line)
  self.b:sample(lua, host, 1, state, ms * 1e6, event, { waits or 1 })
  return self
end

return wait_stacks
