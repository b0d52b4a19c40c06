-- The reader names system calls as the system's header does.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local syscalls = require("sysprof.names.syscalls")

local function has_name(number)
  return syscalls.name(number) ~= ("system call %d"):format(number)
end

-- Of what no processor has.
t.equal(syscalls.name(2^32), "system call 4294967296", "a large number")
t.equal(syscalls.name(-1), "system call -1", "a negative number")

-- No kernel uses 335 to 423 on x86-64, so that newer calls have one number on all processors.
for number = 335, 423 do t.ok(not has_name(number), "no system call: " .. number) end
local max = 0
for number = 0, 2000 do
  if has_name(number) then max = number end
end
t.ok(max >= 450, "the table ends at " .. max)

-- The header of an older system ends earlier; what is above is not compared.
local function check_header()
  if t.shell("uname -m | grep -qx x86_64 && command -v cc") ~= 0 then
    print("not compared with the header: no x86-64, or no compiler")
    return
  end
  local status, out, err = t.shell("cc -E -dM -include sys/syscall.h -x c /dev/null")
  t.equal(status, 0, "cc: " .. err)
  local names, last = {}, 0
  for name, number in out:gmatch("#define __NR_([%w_]+) (%d+)\n") do
    number = tonumber(number)
    names[number], last = name, math.max(last, number)
  end
  t.ok(last >= 334, "the header ends at " .. last)
  for number = 0, math.min(last, max) do
    t.equal(syscalls.name(number), names[number] or ("system call %d"):format(number), "number " .. number)
  end
end
check_header()

t.finish()
