----------------------------------------------------------------------------
-- luajit-sysprof: profiles Lua scripts, shows profiles.
--
-- The first word of its command line is a verb (sysprof.verbs.verbs).
----------------------------------------------------------------------------

local here = arg and arg[0] and arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local command = require("sysprof.cli.command")

local arguments = {}
for i = 1, #arg do arguments[i] = arg[i] end
-- An interrupt may come while the modules load, too.
command.new("luajit-sysprof").run(function(args) return require("sysprof.verbs.verbs").main(args) end, arguments)
