----------------------------------------------------------------------------
-- For tests of programs that run in a folder of their own, "box", some of them beside
-- the test, which then waits for what they do.
----------------------------------------------------------------------------

local t = require("tools_test")
local ffi = require("ffi")
ffi.cdef("int rename(const char *, const char *);")

local PATIENCE_S = 60

local box = {}

-- Begins with an empty folder.
function box.fresh()
  t.shell("rm -rf box && mkdir box && chmod 755 box")
end

-- What is in it of a pattern of the shell, a name in each line.
function box.files(pattern)
  local _, out = t.shell("cd box && ls " .. (pattern or "") .. " 2>/dev/null")
  return out
end

function box.exists(path)
  local file = io.open("box/" .. path)
  if file then file:close() end
  return file ~= nil
end

-- "" if there is no such file.
function box.contents(path)
  return box.exists(path) and t.read_file("box/" .. path) or ""
end

-- Makes a file that is there as a whole at once, in place of the one that is.
function box.put(path, s)
  t.write_file("box/" .. path .. ".new", s)
  assert(ffi.C.rename("box/" .. path .. ".new", "box/" .. path) == 0)
end

-- Runs code to its end, as box.lua beside the folder, in it, under a value of
-- LUAJIT_SYSPROF. Returns status, output and messages.
function box.run(value, code, options)
  t.write_file("box.lua", code)
  return t.shell(("cd box && LUAJIT_SYSPROF='%s' '%s' %s ../box.lua")
		 :format(value, t.luajit, options or ""))
end

-- Starts such a program. It is to end when there is a file "end"; its output is in "out"
-- and "err", then its status in "status".
function box.start(value, code)
  t.write_file("box.lua", code)
  os.execute(("cd box && { LUAJIT_SYSPROF='%s' '%s' ../box.lua >out 2>err; " ..
	      "echo $? >status.tmp; mv status.tmp status; } & "):format(value, t.luajit))
end

-- Waits until f() returns something, and returns it. If that takes too long, ends the
-- program and the test.
function box.wait(what, f)
  local deadline = os.time() + PATIENCE_S
  repeat
    local r = f()
    if r then return r end
    t.shell("sleep 0.02")
  until os.time() > deadline
  box.put("end", "")
  t.ok(false, what .. ": not within a minute, " .. box.contents("err"))
  t.finish()
end

-- Has the program end, without an error.
function box.stop(what)
  box.put("end", "")
  box.wait(what .. ": its end", function() return box.exists("status") end)
  t.equal(box.contents("status"), "0\n", what .. ": status, " .. box.contents("err"))
end

return box
