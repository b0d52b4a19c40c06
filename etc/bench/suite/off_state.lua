----------------------------------------------------------------------------
-- Equal Lua states for the benchmark suite: runs off_run.lua in a new state, which is
-- the same in our build and in plain LuaJIT.
--
-- The state of the program luajit differs. The names and tables of our library, and
-- its paths, shift the numbers of all strings and the pace of the collector. Equal
-- programs then take different times. So the new state has LuaJIT's libraries, but
-- neither ours nor `package`. Arguments: source folder, then off_run.lua's others.
----------------------------------------------------------------------------

local ffi = require("ffi")
local C = ffi.C

jit.off()	-- The new state has a compiler of its own.

ffi.cdef [[
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);
lua_State *luaL_newstate(void);
int luaL_loadfile(lua_State *, const char *);
void lua_pushcclosure(lua_State *, lua_CFunction, int);
void lua_pushstring(lua_State *, const char *);
void lua_setfield(lua_State *, int, const char *);
void lua_call(lua_State *, int, int);
int lua_pcall(lua_State *, int, int, int);
const char *lua_tolstring(lua_State *, int, size_t *);
int luaopen_base(lua_State *);
int luaopen_table(lua_State *);
int luaopen_io(lua_State *);
int luaopen_os(lua_State *);
int luaopen_string(lua_State *);
int luaopen_math(lua_State *);
int luaopen_debug(lua_State *);
int luaopen_bit(lua_State *);
int luaopen_jit(lua_State *);
int luaopen_ffi(lua_State *);
]]

local LUA_GLOBALSINDEX = -10002
local LIBRARIES = { "table", "io", "os", "string", "math", "debug", "bit", "jit" }

local L = C.luaL_newstate()
assert(L ~= nil, "no Lua state")

local function open(library, name, results)
  C.lua_pushcclosure(L, C["luaopen_" .. library], 0)
  C.lua_pushstring(L, name)
  C.lua_call(L, 1, results)
end

-- Ends the program after a failed call, with the error on top of the stack.
local function check(status)
  if status == 0 then return end
  io.stderr:write(ffi.string(C.lua_tolstring(L, -1, nil)), "\n")
  os.exit(1)
end

open("base", "", 0)
for _, name in ipairs(LIBRARIES) do open(name, name, 0) end
open("ffi", "ffi", 1)
C.lua_setfield(L, LUA_GLOBALSINDEX, "ffi")
check(C.luaL_loadfile(L, (...) .. "/etc/bench/suite/off_run.lua"))
for i = 1, select("#", ...) do C.lua_pushstring(L, (select(i, ...))) end
check(C.lua_pcall(L, select("#", ...), 0, 0))
