----------------------------------------------------------------------------
-- Messages, output, --help and exit status of the commands.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local options = require("sysprof.cli.options")
local progress = require("sysprof.cli.progress")
local text = require("sysprof.base.text")

-- Exit status, as in doc/tool.md.
local command = { OK = 0, FAILED = 1, USAGE = 2, INCOMPLETE = 3 }

-- An option that answer() knows, for commands whose first word is their name.
command.COMPLETION = { name = "completion", key = "completion", arg = "SHELL", choice = { "bash" },
		       help = { "print the completion script for bash" } }

-- Runs produce(write) on a file, or on standard output without a path. Returns true,
-- or nil and a message if a byte could not be written.
function command.output(path, produce)
  local file, err = io.stdout
  if path then
    file, err = io.open(path, "wb")
    if not file then return nil, "cannot write " .. err end
  end
  local failed
  produce(function(s)
    if not failed then
      local ok, why = file:write(s)
      if not ok then failed = why or "unknown error" end
    end
  end)
  local ok, why = file:flush()
  if not ok then failed = failed or why or "unknown error" end
  if path then
    ok, why = file:close()
    if not ok then failed = failed or why or "unknown error" end
  end
  if not failed then return true end
  return nil, ("cannot write %s: %s"):format(path or "standard output", failed)
end

-- Returns the functions of a command of this name.
function command.new(program)
  local self = {}

  -- One line on standard error.
  function self.say(...)
    progress.erase()
    io.stderr:write(program, ": ", text.clean(table.concat({ ... })), "\n")
  end

  -- Reports a wrong command line; returns the status.
  function self.usage_error(message)
    self.say(message, ("; see '%s --help'"):format(program))
    return command.USAGE
  end

  -- Prints what --help, --version or --completion ask for and returns the status, or
  -- nil if they do not. For completion: word is the first argument, or nil; others has the options of
  -- other first arguments.
  function self.answer(opt, specs, help_head, help_tail, word, others)
    local answer
    if opt.help then
      answer = help_head .. options.help(specs) .. help_tail
    elseif opt.version then
      answer = ("%s (%s), stream version %d\n"):format(program, options.version(),
						       G.SPF_VERSION)
    elseif opt.completion then
      answer = require("sysprof.cli.completion").bash(program, specs, word, others)
    else
      return nil
    end
    local ok, err = command.output(nil, function(write) write(answer) end)
    if ok then return command.OK end
    self.say(err)
    return command.FAILED
  end

  -- Runs main(args), which returns the status, and ends the program. An error is one
  -- line, too.
  function self.run(main, args)
    local ok, status = xpcall(function() return main(args) end, function(err)
      return tostring(err):gsub("[\r\n]+", " ")
    end)
    if not ok then
      self.say(status:find("interrupted!$") and "interrupted" or "internal error: " .. status)
      status = command.FAILED
    end
    os.exit(status)
  end

  return self
end

return command
