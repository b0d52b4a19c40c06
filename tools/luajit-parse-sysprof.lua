----------------------------------------------------------------------------
-- luajit-parse-sysprof: the reader of profiles.
--
-- The modules sysprof.* do all the work; they lie in the folder "sysprof" beside this file or
-- on package.path.
----------------------------------------------------------------------------

local PROGRAM = "luajit-parse-sysprof"

local here = arg and arg[0] and arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local command = require("sysprof.cli.command")
local report = require("sysprof.cli.report")

local specs = {}
for i, spec in ipairs(report.SPECS) do specs[i] = spec end
specs[#specs + 1] = command.COMPLETION

local this = command.new(PROGRAM)

this.run(function(args) return report.main(this, PROGRAM, "folded", specs, args) end, arg)
