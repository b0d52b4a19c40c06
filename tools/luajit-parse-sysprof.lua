----------------------------------------------------------------------------
-- luajit-parse-sysprof: the reader of profiles.
--
-- The modules sysprof.* do all the work; they lie in the folder "sysprof" beside this file or
-- on package.path.
----------------------------------------------------------------------------

local PROGRAM, DEFAULT = "luajit-parse-sysprof", "folded"

local here = arg and arg[0] and arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local command = require("sysprof.cli.command")
local completion = require("sysprof.cli.completion")
local options = require("sysprof.cli.options")
local report = require("sysprof.verbs.report")
local viewspecs = require("sysprof.cli.viewspecs")

local this = command.new(PROGRAM)
local specs = viewspecs.without {}
specs[#specs + 1] = command.COMPLETION

local function main(args)
  local opt, rest = options.parse(specs, args)
  if not opt then return this.usage_error(rest) end
  if opt.completion then return this.print(completion.bash(PROGRAM, specs)) end
  local status = this.answer(opt, specs, report.help(PROGRAM, DEFAULT, PROGRAM .. " --format=top sysprof.bin"))
  if status then return status end
  if #rest == 0 then return this.usage_error("expected a FILE") end
  return report.show(this, opt, rest, DEFAULT)
end

local arguments = {}
for i = 1, #arg do arguments[i] = arg[i] end
this.run(main, arguments)
