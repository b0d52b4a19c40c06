-- Sources that only a profile names: regular files, which all may read or which stand below the working folder. A profile
-- comes from anyone, and its reader may be root.
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local B = require("stream_builder")
local shell_status = require("shell_status")
local t = require("tools_test")
local F = B.F

local TEXT = "local secret = 1\nwork()\n"

t.shell("rm -rf here away; mkdir -p here/lib away")
local _, root = t.shell("pwd -P")
root = root:gsub("\n$", "")
t.write_file("here/lib/own.lua", TEXT)
t.write_file("away/open.lua", TEXT)
t.write_file("away/private.lua", TEXT)
t.shell("mkdir -p away/closed; ln -s lib/own.lua here/own.txt")
t.write_file("away/closed/open.lua", TEXT)
t.shell("chmod 600 here/lib/own.lua away/private.lua; chmod 644 away/open.lua away/closed/open.lua; " ..
	"chmod 700 away/closed; mkfifo here/pipe.lua; " ..
	"ln -s ../away/private.lua here/link.lua; ln away/private.lua here/hard.lua; ln -s /dev/zero here/zero.lua")

-- Lists the hot lines of a profile whose only chunk has a name.
local function list(chunk, arguments, folder)
  local b = B.new():context():lfunc(1, 0, "@" .. chunk):stack(1, { F.cbound, F.lfunc(1, 1) }):sample(1, 0, 5)
  return t.with_file(b:finish(), function(path)
    local status, out, err = t.shell(("cd %s && timeout -k 1 60 '%s' '%s/tools/luajit-sysprof.lua' annotate %s '%s'")
      :format(folder or "here", t.luajit, t.source, arguments or "", path))
    t.equal(status, 0, chunk .. ": status: " .. err)
    return out
  end)
end

local REFUSED = "[no source: %s: only some users may read it, and only the profile names it; expected it below this " ..
		"folder, or on the command line]\n"

-- Can all users reach this folder? A home folder may be closed to others.
local is_open = shell_status([[d=$PWD; while [ -n "$d" ]; do case $(stat -c %A "$d") in *[xt]) ;; *) exit 1 ;; esac; d=${d%/*}; done]]) == 0

for chunk, shown in pairs { ["lib/own.lua"] = true, [root .. "/here/lib/own.lua"] = true, [root .. "/away/open.lua"] = is_open, [root .. "/away/closed/open.lua"] = false,
			    ["../away/private.lua"] = false, [root .. "/away/private.lua"] = false, ["link.lua"] = false,
			    ["lib/../link.lua"] = false } do
  local out = list(chunk)
  t.equal(out:find("local secret = 1", 1, true) ~= nil, shown, chunk .. ": " .. out)
  if not shown then t.contains(out, REFUSED:format(chunk), chunk) end
  t.contains(out, ("\n%s  100.0%%\n"):format(chunk), chunk .. ": its costs")
end
-- The second name of a file could be that of a foreign one.
t.contains(list("hard.lua"), REFUSED:format("hard.lua"), "a hard link")
-- The folder of everything is no folder that a user has chosen.
t.contains(list(root:sub(2) .. "/away/private.lua", nil, "/"), REFUSED:format(root:sub(2) .. "/away/private.lua"), "from /")
for _, name in ipairs { "pipe.lua", "zero.lua" } do
  t.contains(list(name), ("[no source: %s: it is no regular file]\n"):format(name), name)
end
t.contains(list("evil\n\27[2J.lua"), "[no source: evil??[2J.lua: No such file or directory]", "a name with control characters")
-- The user names it.
t.contains(list("away/private.lua", "../away/private.lua"), "local secret = 1", "on the command line")


-- A user names a file by the end of its path: the profile's own path opens it, under the same rules.
local function both(arguments)
  local chunks, outputs = { "@./lib/own.lua", "@../away/private.lua", "@x/two.lua", "@y/two.lua" }, {}
  local b = B.new():context()
  for i, chunk in ipairs(chunks) do
    b:lfunc(i, 0, chunk):stack(i, { F.cbound, F.lfunc(i, 1) }):sample(i, 0, 5)
  end
  t.with_file(b:finish(), function(path)
    for i, command in ipairs { "luajit-sysprof.lua' annotate ", "luajit-parse-sysprof.lua' --annotate=" } do
      local _, out, err = t.shell(("cd here && '%s' '%s/tools/%s%s '%s'"):format(t.luajit, t.source, command, arguments,
										  path))
      outputs[i] = out .. err
    end
  end)
  return ipairs(outputs)
end
for _, out in both("own.lua") do t.contains(out, "local secret = 1", "the profile's path") end
for _, out in both("own.lua") do t.contains(out, "./lib/own.lua", "its name") end
for _, out in both("private.lua") do
  t.ok(not out:find("local secret"), "a private file that the profile names")
  t.contains(out, "../away/private.lua: only some users may read it", "why")
end
for _, out in both("two.lua") do
  t.contains(out, "two.lua: No such file or directory; the profile names x/two.lua, y/two.lua", "several files")
end
for _, out in both("own.lua -o own.txt --force") do t.contains(out, "is a source of the profile", "the output") end
t.equal(t.read_file("here/lib/own.lua"), TEXT, "the source is as before")

t.finish()
