----------------------------------------------------------------------------
-- Start code of 'run': the argument of luajit that starts the profiler, and command lines without it.
----------------------------------------------------------------------------

local startcode = {}

local BEFORE, BEHIND = 'return assert(load(assert(io.open(', [[, 'rb')):read('*a'), '=[profiler]'))()]]

-- Returns code that runs the code in a file, under a name that stands for it in profiles. A tail call leaves no frame.
function startcode.of(path)
  return BEFORE .. ("%q"):format(path) .. BEHIND
end

-- Returns a command line as the user typed it.
function startcode.without(line)
  local first, last = line:find(" -e " .. BEFORE, 1, true)
  local path, at = line:match('^"(/[%w/_.-]*)"()', (last or #line) + 1)
  local is_ours = path and (path:find("^/proc/%d+/fd/%d+$") or path:find("/luajit%-sysprof%-%w+$")) and
		  line:sub(at, at + #BEHIND - 1) == BEHIND
  return is_ours and line:sub(1, first - 1) .. line:sub(at + #BEHIND) or line
end

return startcode
