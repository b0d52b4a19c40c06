-- LUAJIT_SYSPROF=control=FILE,fork: a process, its children from before and during a run,
-- and their children obey the same file. Each writes its own files. Without fork, the
-- children do not obey.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local box = require("box")
local reader = require("sysprof.read.reader")

local exists, contents, put, wait = box.exists, box.contents, box.put, box.wait

local _, here = t.shell("pwd")
here = here:gsub("\n", "")

-- Makes a child when a file "fork" exists. The child makes another one. All work until a
-- file "end" exists. Each prints its process number. LuaJIT might never leave compiled
-- code.
local PROGRAM = [[
local ffi = require("ffi")
local C = ffi.C
ffi.cdef "int getpid(void); int access(const char *, int); int fork(void); int waitpid(int, int *, int);"
jit.off()
local function is_there(name) return C.access(name, 0) == 0 end
local function say(who)
  local file = assert(io.open(who .. ".tmp", "w"))
  file:write(C.getpid())
  file:close()
  os.rename(who .. ".tmp", who)
end
local deadline = os.time() + 900
local function work(file)
  local s = 0
  while not is_there(file) and not is_there("end") and os.time() < deadline do
    for i = 1, 1e4 do s = s + #tostring(i) end
  end
end
local function as_child(f)
  local pid = C.fork()
  if pid == 0 then
    f()
    os.exit(0)
  end
  return pid
end
local function wait(pid)
  local status = ffi.new("int[1]")
  while C.waitpid(pid, status, 0) ~= pid do end
  if status[0] ~= 0 then os.exit(9) end
end

say("parent")
work("fork")
local child = as_child(function()
  say("child")
  work("fork again")
  local grandchild = as_child(function()
    say("grandchild")
    work("end")
  end)
  work("end")
  wait(grandchild)
end)
work("end")
wait(child)
]]

local function begin(options)
  box.fresh()
  box.start(("control=%s/box/control,paused,hz=500,clock=wall-signal,path=r%%r.bin%s")
	    :format(here, options), PROGRAM)
end

local function number_of(who)
  return wait("the " .. who, function() return exists(who) and contents(who) end)
end

local function ended(what)
  box.stop(what)
  t.equal(contents("err"), "", what .. ": no message")
end

local function parse(path)
  return exists(path) and reader.parse_string(contents(path))
end

local function is_complete(path)
  local p = parse(path)
  return p and p.complete and not p.goes_on
end

local function each(list, what, f)
  for _, path in ipairs(list) do wait(path .. ": " .. what, function() return f(path) end) end
end

for _, threads in ipairs { "own", "all" } do
  local what = "threads=" .. threads
  begin(",fork,threads=" .. threads)
  number_of("parent")
  put("fork", "")
  local child = number_of("child")

  -- A run of both; then one in which the child has a child.
  local first = { "r1.bin", "r1.bin." .. child }
  put("control", "start\n")
  each(first, "start", exists)
  put("fork again", "")
  local grandchild = number_of("grandchild")
  first[3] = first[2] .. "." .. grandchild
  each(first, "the run goes on in a child", exists)
  each(first, "dump", function(path)
    local size = #contents(path)
    put("control", "dump")
    wait("dump of " .. path, function() return #contents(path) > size end)
    local p = parse(path)
    return p and p:totals() > 0 and not is_complete(path)
  end)
  put("control", "stop\n")
  each(first, "stop", is_complete)
  local second = { "r2.bin", "r2.bin." .. child, "r2.bin." .. grandchild }
  put("control", "start again\n")
  each(second, "a second run", exists)
  ended(what)
  local pids = { number_of("parent"), child, grandchild }
  for _, run in ipairs { first, second } do
    for i, path in ipairs(run) do
      t.ok(is_complete(path), path .. ": complete")
      local p = parse(path)
      t.equal(p and p.meta.pid, pids[i], path .. ": whose it is")
    end
  end
  local _, files = t.shell("ls box/*.bin* | wc -l")
  t.equal(tonumber(files), 6, what .. ": files")
end

-- Without fork only the parent is controlled.
begin("")
number_of("parent")
put("fork", "")
number_of("child")
put("control", "start\n")
each({ "r1.bin" }, "start", exists)
put("control", "stop\n")
each({ "r1.bin" }, "stop", is_complete)
put("fork again", "")
number_of("grandchild")
ended("without fork")
t.equal(box.files("*.bin*"), "r1.bin\n", "without fork: files")
t.finish()
