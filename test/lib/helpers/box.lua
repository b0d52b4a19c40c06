----------------------------------------------------------------------------
-- Programs that tests run in a folder of their own, "box". Some run beside the test,
-- which waits for their results.
----------------------------------------------------------------------------

local t = require("tools_test")
local ffi = require("ffi")
ffi.cdef("int rename(const char *, const char *);")

local PATIENCE_S = 200

local box = {}

-- Begins with an empty folder.
function box.fresh()
  t.shell("rm -rf box && mkdir box && chmod 755 box")
end

-- The files of the folder that fit a pattern of the shell, a name in each line.
function box.files(pattern)
  local _, out = t.shell("cd box && ls " .. (pattern or "") .. " 2>/dev/null")
  return out
end

function box.exists(path)
  local file = io.open("box/" .. path)
  if file then file:close() end
  return file ~= nil
end

-- The content of a file; "" if it does not exist.
function box.contents(path)
  return box.exists(path) and t.read_file("box/" .. path) or ""
end

-- Replaces a file in one step: no program sees a part of it.
function box.put(path, s)
  t.write_file("box/" .. path .. ".new", s)
  assert(ffi.C.rename("box/" .. path .. ".new", "box/" .. path) == 0)
end

-- Runs code to its end in the folder, with a value of LUAJIT_SYSPROF. The file of the
-- code is box.lua beside the folder. Returns status, output and messages.
function box.run(value, code, options)
  t.write_file("box.lua", code)
  return t.shell(("cd box && LUAJIT_SYSPROF='%s' '%s' %s ../box.lua")
		 :format(value, t.luajit, options or ""))
end

-- Checks that a value is refused in one sentence with these parts, and that the program runs on.
function box.refuses(value, ...)
  local status, out, err = box.run(value, "print(misc.sysprof.stop()) os.exit(7)")
  t.equal(status, 7, value .. ": the status is the program's")
  t.equal(out, "nil\tprofiler is not running\t22\n", value .. ": not profiled")
  t.equal(select(2, err:gsub("\n", "")), 1, value .. ": one sentence, not " .. err)
  t.equal(err:find("^LUAJIT_SYSPROF"), 1, value .. ": names the variable: " .. err)
  for _, part in ipairs { ... } do t.contains(err, part, value) end
  t.equal(box.files("*.bin*"), "", value .. ": no file")
end

-- Starts such a program. It must end when a file "end" exists. The files "out" and "err"
-- get its output, at the end "status" gets its status.
function box.start(value, code)
  t.write_file("box.lua", code)
  os.execute(("cd box && { LUAJIT_SYSPROF='%s' '%s' ../box.lua >out 2>err; " ..
	      "echo $? >status.tmp; mv status.tmp status; } & "):format(value, t.luajit))
end

-- Waits until f() returns a true value, and returns it. After minutes, ends the program
-- and the test.
function box.wait(what, f)
  local deadline = os.time() + PATIENCE_S
  repeat
    local r = f()
    if r then return r end
    t.nap(20)
  until os.time() > deadline
  box.put("end", "")
  t.ok(false, what .. ": not in time, " .. box.contents("err"))
  t.finish()
end

-- Makes the program end, and checks that it ends without an error.
function box.stop(what)
  box.put("end", "")
  box.wait(what .. ": its end", function() return box.exists("status") end)
  t.equal(box.contents("status"), "0\n", what .. ": status, " .. box.contents("err"))
end

return box
