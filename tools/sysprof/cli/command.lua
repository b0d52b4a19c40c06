----------------------------------------------------------------------------
-- Messages, --help and exit status of the commands.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local child = require("sysprof.base.child")
local files = require("sysprof.base.files")
local options = require("sysprof.cli.options")
local outfile = require("sysprof.formats.outfile")
local progress = require("sysprof.terminal.progress")
local stackroom = require("sysprof.base.stackroom")
local text = require("sysprof.base.text")

-- Exit status, as --help of each command tells.
local command = { OK = 0, FAILED = 1, USAGE = 2, INCOMPLETE = 3 }

-- An option that answer() knows, for commands whose first word is their name.
command.COMPLETION = { name = "completion", key = "completion", arg = "SHELL", choice = { "bash" },
		       help = { "print the completion script for bash" } }

-- Returns which sysprof the LuaJIT that runs us has, and which LuaJIT that is.
function command.version()
  local misc = rawget(_G, "misc")
  return misc and misc.sysprof and misc.sysprof.version or
	 "reader of sysprof, on " .. jit.version
end

-- Returns the end of a sentence on a word that names no file: what to type if it is the number of a process; else "".
function command.process_hint(word)
  local is_process = word:find("^%d+$") and not files.stat(word) and files.stat("/proc/" .. word)
  return is_process and ("; process %s runs; did you mean 'luajit-sysprof record %s'?"):format(word, word) or ""
end

-- Returns the functions of a command of this name. verb: its first word, or nil.
function command.new(program, verb)
  local self = { program = program, name = verb and program .. " " .. verb or program }

  -- One line on standard error.
  function self.say(...)
    progress.erase()
    io.stderr:write(program, ": ", text.clean(table.concat({ ... })), "\n")
  end

  -- Reports a wrong command line; returns the status.
  function self.usage_error(message)
    self.say(message, (message:find("%?$") and " See" or "; see") .. (" '%s --help'"):format(self.name))
    return command.USAGE
  end

  -- Prints a text on standard output; returns the status.
  function self.print(answer)
    local ok, err = outfile.write(nil, function(write) write(answer) end)
    if ok then return command.OK end
    self.say(err)
    return command.FAILED
  end

  -- Prints what --help or --version ask for and returns the status, or nil if they do not. help: the parts
  -- "usage", "intro", "tail" and "example" of the help.
  function self.answer(opt, specs, help)
    if opt.version then
      return self.print(("%s (%s), stream version %d\n"):format(program, command.version(), G.SPF_VERSION))
    elseif opt.help == "-h" and help.example then
      return self.print(("%s\n\n%s\nExample: %s\n"):format(help.usage, options.help(specs, true), help.example))
    elseif opt.help then
      return self.print(("%s\n%s\n%s\n%s"):format(help.usage, help.intro, options.help(specs), help.tail))
    end
    return nil
  end

  -- Runs main(args), which returns the status, and ends the program. An error is one
  -- line, too.
  function self.run(main, args)
    child.ignore_size()
    local ok, status = xpcall(stackroom.call, function(err)
      return tostring(err):gsub("[\r\n]+", " ")
    end, main, args)
    if not ok then
      self.say(status:find("interrupted!$") and "interrupted" or "internal error: " .. status)
      status = command.FAILED
    end
    os.exit(status)
  end

  return self
end

return command
