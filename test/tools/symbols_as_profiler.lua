-- A profile without its end gets its names of C code from the files, the same as the
-- profiler would have written.

local t = require("tools_test")
local demangle = require("sysprof.names.demangle")
local reader = require("sysprof.read.reader")
local symbolfiles = require("sysprof.names.symbolfiles")

t.write_file("work.lua", [[
assert(misc.sysprof.start{ mode = "C", interval = 1, clock = "wall-signal", path = "p.bin" })
local start = os.time()
repeat
  local list = {}
  for i = 1, 2000 do list[i] = tostring(i) .. ("%d"):format(i) end
  table.sort(list)
  local s = table.concat(list):gsub("1", "2"):rep(5)
  local file = io.open("/dev/null", "w")
  file:write(s)
  file:close()
until misc.sysprof.report().samples >= 100 or os.time() - start > 30
misc.sysprof.stop()
]])
local status, _, err = t.shell(("'%s' work.lua"):format(t.luajit))
t.equal(status, 0, "profile: " .. err)

local p = assert(reader.read("p.bin"))
local names = p.hsyms
p.hsyms = require("sysprof.base.numbermap").new()
local files = symbolfiles.new(p)
local compared = 0
for addr, symbol in names:each() do
  local m = p:module_at(addr)
  -- A file without a build-id cannot be recognised.
  if m and m.path:find("^/") and m.buildid ~= "" then
    local found = files:find(addr)
    -- Files of packages with debug symbols name more.
    if symbol.name ~= "" or (found and found.name == "") then
      compared = compared + 1
      t.equal(found and demangle.without_version(found.name),
	      demangle.without_version(symbol.name), "name")
      t.equal(found and found.addr, symbol.addr, "start of " .. symbol.name)
    end
  end
end
t.ok(compared > 0, "names to compare")

t.finish()
