-- Returns the exit status of a shell command. With LUAJIT_ENABLE_LUA52COMPAT, os.execute() returns true or nil, how the
-- command ended, and the status; otherwise 256 times the status.

return function(command)
  local a, how, code = os.execute(command)
  return how and code or a / 256
end
