----------------------------------------------------------------------------
-- Truth of the compiler's events: the log that jit.attach keeps in the same run.
--
-- Reasons are worded here from jit.vmdef, as LuaJIT's own module jit.v does.
----------------------------------------------------------------------------

local jutil = require("jit.util")
local vmdef = require("jit.vmdef")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local truth = {}

-- Name of an opcode of a list of names of six letters each.
local function opcode(names, n) return (names:sub(6 * n + 1, 6 * n + 6):gsub(" ", "")) end

-- Returns the words of an abort.
function truth.words(err, info)
  if type(err) ~= "number" then return tostring(err) end
  local text = vmdef.traceerr[err]
  if not text:find("%", 1, true) then return text end
  if text:find("bytecode", 1, true) then info = opcode(vmdef.bcnames, info)
  elseif text:find("IR instruction", 1, true) then info = opcode(vmdef.irnames, info) end
  return (text:gsub("%%[ds]", function() return type(info) == "function" and "FUNCTION" or tostring(info) end))
end

local log

-- Returns the line of an abort. Newer LuaJITs name the builtin function that was recorded: then its caller has the line.
local function line_of(func, pc)
  local line, level = jutil.funcinfo(func, pc).currentline, 3
  while not line do
    local info = debug.getinfo(level, "Sl")
    if not info then return 0 end
    if info.what ~= "C" then line = info.currentline end
    level = level + 1
  end
  return line
end

local function on_trace(what, tr, func, pc, err, info)
  if not log then return end
  log[what] = (log[what] or 0) + 1
  if what == "abort" then
    local key = line_of(func, pc) .. " " .. truth.words(err, info)
    log.aborts[key] = (log.aborts[key] or 0) + 1
  end
end

local function on_exit()
  if log then log.texit = (log.texit or 0) + 1 end
end

-- Compiled, they would have exits that nobody logs.
jit.off(on_trace)
jit.off(line_of)
jit.off(on_exit)

-- Begins to log.
function truth.begin()
  log = { aborts = {} }
  jit.attach(on_trace, "trace")
  jit.attach(on_exit, "texit")
end

-- Ends the log and returns it.
function truth.finish()
  local its = log
  jit.attach(on_trace)
  jit.attach(on_exit)
  log = nil
  return its
end

-- So that nothing is recorded across the start of the log.
jit.off(truth.begin)
jit.off(truth.finish)

-- Returns the sums of an event of a profile by "LINE REASON" of the leaf, as in the log; the sum and total of
-- the event; and how many of its stacks are broken. Line 0 is a leaf without a line.
function truth.sums(path, event)
  local p = assert(reader.read(path))
  assert(p.complete, p:problem_text())
  local v = assert(view.new(p, { no_host = true, lines = true, weight = "event", event = event }))
  local sums, sum = {}, 0
  v:each_joined(function(parts, n, count, slot)
    local reason, leaf = v:reason(slot), n
    if reason then leaf = n - 1 end
    local name = leaf > 0 and v.symbols:name(parts[leaf]).text or ""
    local key = (name:match(":(%d+)%)?$") or 0) .. " " .. (reason and reason:sub(2, -2) or "")
    key = key:gsub("FastFunc .*", "FastFunc FUNCTION")
    sums[key], sum = (sums[key] or 0) + count, sum + count
  end)
  return sums, sum, v.event.total, v.event.counters
end

return truth
