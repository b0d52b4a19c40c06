-- A VM is closed while another one of the same file goes on: its memory is not live at the end. Its allocations stay.
-- TIMEOUT: 300

local json = require("json_decode")
local programs = require("live_programs")
local t = require("tools_test")

os.execute("rm -rf ./*")

local HOST = [[
  local ffi = require("ffi")
  ffi.cdef "void *luaL_newstate(void); void luaL_openlibs(void *); int luaL_loadstring(void *, const char *);"
  ffi.cdef "int lua_pcall(void *, int, int, int); void lua_close(void *); int usleep(unsigned int);"
  local C = ffi.C
  local function run(L, code) assert(C.luaL_loadstring(L, code) == 0 and C.lua_pcall(L, 0, 0, 0) == 0) end
  local function vm(name, start)
    local L = C.luaL_newstate()
    C.luaL_openlibs(L)
    run(L, start .. " kept = {} function " .. name .. "() kept[#kept + 1] = ('x'):rep(10000) .. #kept end")
    return L
  end
]]

-- Checks the live memory of a file: `stays` has some, `goes` has none, though it allocated.
local function check(file, what)
  local function stacks(event)
    local status, out, err = programs.try(("report --event=%s --format=folded %s"):format(event, file))
    t.equal(status, 0, what .. ": " .. err)
    return out
  end
  local alloc, live = stacks("alloc"), stacks("live")
  t.contains(alloc, "stays (", what .. ": allocations")
  t.contains(alloc, "goes (", what .. ": allocations of the closed VM")
  t.contains(live, "stays (", what .. ": live")
  t.ok(not live:find("goes (", 1, true), what .. ": live of the closed VM: " .. live)
end

-- -- A shared file ---------------------------------------------------------

local START = "assert(misc.sysprof.start { mode = 'C', clock = 'alloc/period=1/', path = 'shared.bin', shared = true })"
t.write_file("shared.lua", HOST .. ("local START = %q\n"):format(START) .. [[
  local first, second = vm("goes", START), vm("stays", START)
  for _ = 1, 100 do
    run(first, "goes()")
    run(second, "stays()")
  end
  run(first, "assert(misc.sysprof.dump())")
  C.lua_close(first)
  run(second, "assert(misc.sysprof.stop())")
]])
t.equal(t.shell(("'%s' shared.lua"):format(t.luajit)), 0, "a shared file: status")
check("shared.bin", "a shared file")
do	-- The VMs hold little from before the start: what they hold does not have that of the closed one.
  local _, out = programs.try("report --format=json shared.bin")
  for _, e in ipairs(json.decode(out).events) do
    if e.name == "live" then t.ok(e.total < 1.5 * e.weight, ("%.0f of %.0f held"):format(e.weight, e.total)) end
  end
end

-- -- A recording -----------------------------------------------------------

t.write_file("host.lua", HOST .. [[
  local first, second = vm("goes", "assert(misc.sysprof.live())"), vm("stays", "assert(misc.sysprof.live())")
  while true do
    if first then run(first, "goes()") end
    run(second, "stays()")
    if first and io.open("close") then
      local from = os.clock()	-- The event begins within a few milliseconds of CPU time.
      while os.clock() < from + 0.3 do run(first, "for i = 1, 10 do tostring(i) end") end
      for _ = 1, 100 do run(first, "goes()") end
      C.lua_close(first)
      first = nil
      io.open("closed", "w"):close()
    end
    C.usleep(1000)
  end
]])
local pid = programs.spawn(("'%s' host.lua >host.out 2>&1"):format(t.luajit))
t.wait_until("the program is live", function() return programs.is_live(pid) end)
programs.spawn_for_status(("%s record --threads -e alloc --period=100 -d 5m -o record.bin %d >record.out 2>&1")
			  :format(programs.RUN, pid))
t.wait_until("the recording runs", function() return programs.is_recorded(pid) end)
t.write_file("close", "")
t.wait_until("the VM is closed", function() return io.open("closed") end)
t.equal(programs.try("stop " .. pid), 0, "stop")
t.equal(programs.status(), 0, "record: " .. t.read_file("record.out"))
check("record.bin", "a recording")
t.equal(t.content("host.out"), "", "the program")
programs.finish()
t.finish()
