-- The flame graph's page is made of files beside the reader's modules: found wherever the program goes, and
-- named by a sentence if one is missing. Then no output takes a name.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local F = B.F

local function run(command)
  local status, out, err = t.shell(command)
  t.equal(status, 0, command .. ": " .. err)
  return out
end

run("rm -rf tools moved page.html && mkdir moved && cp -r '" .. t.source .. "/tools' .")
local b = B.new():meta("clock", "cpu"):context(5)
b:lfunc(1, 3, "@x.lua", "f"):stack(1, { F.lfunc(1) }):sample(1, 1, 3, 0, 700)
t.write_file("p.bin", b:finish())

-- A program with a relative path in LUA_PATH changes its folder, and package.path.
t.write_file("program.lua", [[
local sysprof = require("sysprof")
local view = sysprof.view(sysprof.read("p.bin", { spread = true }))
local function page()
  local out = {}
  assert(sysprof.render(view, "flamegraph", function(s) out[#out + 1] = s end))
  return table.concat(out)
end
local before = page()
local ffi = require("ffi")
ffi.cdef("int chdir(const char *);")
assert(ffi.C.chdir("moved") == 0)
package.path = "/nowhere/?.lua"
assert(page() == before)
io.write(before)
]])
local page = run(("LUA_PATH='tools/?.lua' '%s' program.lua"):format(t.luajit))
t.equal(run(t.parser .. "--format=flamegraph p.bin"):gsub("<title>.-</h1>", ""), page:gsub("<title>.-</h1>", ""),
	"the page of the command")
t.equal(page:find("{{", 1, true), nil, "a place that is not filled")
for part in run("ls tools/sysprof/formats/page"):gmatch("[^\n]+") do
  local s = t.read_file("tools/sysprof/formats/page/" .. part)
  local head, body = s:match("^(.-)\n\n(.*)$")
  t.ok(head and (head:find("^//") or head:find("^/%*.*%*/$") or head:find("^<!%-%-.*%-%->$")), part .. ": its head")
  t.equal(page:find(head, 1, true), nil, part .. ": its head in the page")
  if part:find("%.js$") and not part:find("^values_") and part ~= "script.js" then t.contains(page, body, part) end
end

-- Each file is needed.
local READER = ("LUA_PATH= '%s' tools/luajit-parse-sysprof.lua "):format(t.luajit)
for _, part in ipairs { "page.html", "page.css", "trees.js", "script.js", "values_samples.js" } do
  local path = "tools/sysprof/formats/page/" .. part
  run(("mv %s kept"):format(path))
  local status, out, err = t.shell(READER .. "-o page.html p.bin")
  t.equal(status, 1, part .. " is missing: status")
  t.equal(out, "", part .. " is missing: output")
  t.contains(err, "p.bin: cannot write page.html: the flame graph needs the file /", part .. " is missing")
  t.contains(err, ("/%s: No such file or directory\n"):format(path), part .. " is missing")
  t.equal(t.content("page.html"), "", part .. " is missing: file")
  run(("mv kept %s"):format(path))
end
run(READER .. "-o page.html p.bin")

-- A program that holds the modules itself has no such folder.
t.write_file("bundle.lua", [[
local name = "sysprof.formats.flamegraph_page"
package.preload[name] = assert(loadfile("tools/sysprof/formats/flamegraph_page.lua"))
local searchpath = package.searchpath
package.searchpath = function(wanted, ...) if wanted ~= name then return searchpath(wanted, ...) end end
local sysprof = require("sysprof")
print(sysprof.render(sysprof.view(sysprof.read("p.bin")), "flamegraph", print))
]])
t.equal(run(("LUA_PATH='tools/?.lua' '%s' bundle.lua"):format(t.luajit)),
	"nil\tthe flame graph needs a folder of files beside its module, which is in no file\n", "modules in no file")
t.finish()
