-- Commands that come while a live program has closed a VM and not yet opened the next: before they connect, and between their
-- connection and their request. They wait for the next VM.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- WAITS: most of its time

local programs = require("live_programs")
local t = require("tools_test")

os.execute("rm -rf ./*")

-- The program opens and closes VMs as the file 'wanted' tells: it holds 'open' or 'closed'. The file 'is' follows.
t.write_file("host.lua", [[
  local ffi = require("ffi")
  ffi.cdef "void *luaL_newstate(void); void luaL_openlibs(void *); int luaL_loadstring(void *, const char *);"
  ffi.cdef "int lua_pcall(void *, int, int, int); void lua_close(void *); int usleep(unsigned int);"
  local C, L = ffi.C, nil
  local function read(path)
    local file = io.open(path)
    local s = file and file:read("*a") or ""
    if file then file:close() end
    return s
  end
  local function write(path, s)
    local file = io.open(path .. ".new", "w")
    file:write(s)
    file:close()
    os.rename(path .. ".new", path)
  end
  local function run(code)
    assert(C.luaL_loadstring(L, code) == 0 and C.lua_pcall(L, 0, 0, 0) == 0)
  end
  while true do
    local wanted = read("wanted")
    if wanted == "open" and not L then
      L = C.luaL_newstate()
      C.luaL_openlibs(L)
      run("assert(misc.sysprof.live()) function works() local s = 0 for i = 1, 1e5 do s = s + i % 7 end end")
    elseif wanted == "closed" and L then
      C.lua_close(L)
      L = nil
    end
    write("is", L and "open" or "closed")
    if L then run("works() jit.off() works() jit.on()") end
    C.usleep(1000)
  end
]])

-- What a command does first. It opens the VM when it waits for it or for answers, and with CLOSES closes it before its first
-- request.
t.write_file("hook.lua", [[
  local files = require("sysprof.base.files")
  local programs, requests = require("sysprof.live.programs"), require("sysprof.live.requests")
  local closes = os.getenv("CLOSES")
  local function let(state)
    local file = io.open("wanted", "w")
    file:write(state)
    file:close()
    repeat until files.text("is", 100) == state
  end
  local await, collect, send_file = programs.await, requests.collect, requests.send_file
  function programs.await(list)
    if #list > 0 then let("open") end
    return await(list)
  end
  function requests.send_file(...)
    if closes then let("closed") end
    closes = nil
    return send_file(...)
  end
  function requests.collect(...)
    let("open")
    return collect(...)
  end
]])

local function let(state)
  t.write_file("wanted", state)
  t.wait_until("VM: " .. state, function() return t.content("is") == state end)
end

local pid = programs.spawn(("'%s' host.lua >host.out 2>&1"):format(t.luajit))
local HOOKED = ("LUA_PATH='%s/tools/?.lua;;' LUA_INIT=@hook.lua "):format(t.source)

-- Checks that a command succeeds, and that a text is in its output.
local function succeeds(arguments, part)
  for _, closes in ipairs { "", "CLOSES=1 " } do
    local what = closes .. arguments
    let(closes == "" and "closed" or "open")
    local status, out, err = programs.try(("%s %d"):format(arguments, pid), HOOKED .. closes)
    t.equal(status, 0, what .. ": status: " .. err)
    t.contains(out, part, what)
    t.ok(not err:find("live VM", 1, true) and not err:find("not live", 1, true), what .. ": " .. err)
  end
end

succeeds("record -d 300ms --format=folded -o -", "works")
succeeds("top --once -d 300ms", "works")
succeeds("dump", "coroutine")
succeeds("perf-map", "")

-- Nothing comes: the message tells what is so.
let("closed")
programs.says("record " .. pid, 1, "is not live; start it with LUAJIT_SYSPROF=live, or let it call misc.sysprof.live()")

t.equal(t.content("host.out"), "", "the program")
os.remove(("/tmp/perf-%d.map"):format(pid))
programs.finish()
t.finish()
