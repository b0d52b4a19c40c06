-- The library "misc" is present like any other one.

local t = require("tools_test")

t.equal(type(misc), "table", "global")
t.equal(require("misc"), misc, "require")
t.equal(package.loaded.misc, misc, "package.loaded")
for _, name in ipairs({ "start", "stop", "report" }) do
  t.equal(type(misc.sysprof[name]), "function", name)
end
t.ok(misc.sysprof.version:find("^sysprof %d+%.%d+%.%d+, luajit2? [%w.:+~-]+$"), misc.sysprof.version)
local status, out = t.shell(("'%s' -e 'misc = nil print(require(\"misc\").sysprof.report().samples)'")
			    :format(t.luajit))
t.equal(status, 0, "require without the global")
t.equal(out, "0\n", "require without the global")
t.finish()
