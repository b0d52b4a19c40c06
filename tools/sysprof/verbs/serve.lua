----------------------------------------------------------------------------
-- Verb 'serve': profiles of programs that run, or of files, by HTTP.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local endpoints = require("sysprof.serve.endpoints")
local files = require("sysprof.base.files")
local interrupts = require("sysprof.base.interrupts")
local processes = require("sysprof.live.processes")
local programs = require("sysprof.live.programs")
local reader = require("sysprof.read.reader")
local regular = require("sysprof.base.regular")
local requests = require("sysprof.live.requests")
local server = require("sysprof.serve.server")
local targets = require("sysprof.cli.targets")
local tcp = require("sysprof.serve.tcp")
local token = require("sysprof.serve.token")
local viewspecs = require("sysprof.cli.viewspecs")

local LOOPBACK, PORT = "127.0.0.1", 6060
local SHOWN = 3		-- Programs or files that the first line names.

-- Returns { host=, port= } of an address, or nil and what was expected. host is nil for all addresses.
local function to_address(value)
  local host, port = value:match("^%[([%x:.]+%%?[%w_.-]*)%]:(%d+)$")
  if not host then host, port = value:match("^([%w_.*-]*):(%d+)$") end
  port = port and #port <= 5 and tonumber(port)
  if not port or port > 65535 then return nil, "HOST:PORT, such as 127.0.0.1:6060, [::1]:6060 or :0" end
  if host == "" then host = LOOPBACK end
  return { host = host ~= "*" and host or nil, port = port }
end

local verb = { name = "serve", line = "answer pprof, collectors and the browser by HTTP",
  specs = targets.specs({
    { name = "listen", key = "listen", arg = "HOST:PORT", convert = to_address,
      brief = "where to listen, default 127.0.0.1:6060", help = {
      "where to listen, default 127.0.0.1:6060; port 0 chooses",
      "one; *:PORT is on all addresses; other addresses than",
      "those of loop-back get a token" } },
  }, viewspecs.of { "help", "version" }) }

verb.help = {
  usage = "Usage: luajit-sysprof serve [options] PID...|FILE...",
  intro = [[

Answers 'go tool pprof http://127.0.0.1:6060/debug/pprof/profile', collectors of profiles
and the browser, until Ctrl-C. Each request records live programs anew. Profiles in files
are shown as they are.
]],
  tail = [[
Exit status: 0 ended by a signal, 1 no program or file could be opened or the address is
not free, 2 wrong command line.
]],
  example = "luajit-sysprof serve 4711",
}

-- Are the arguments files?
local function are_files(rest)
  return rest[1] ~= nil and not rest[1]:find("^%d+$")
end

-- Says what is wrong with arguments, or nil.
local function wrong_arguments(opt, rest)
  if not are_files(rest) then
    if #rest == 0 and not opt.names then
      return "expected a PID, a FILE or --name=NAME; 'luajit-sysprof ps' lists live programs"
    end
    return targets.wrong("serve", opt, rest)
  elseif opt.names or opt.children then
    return ("--%s needs programs, got the file '%s'"):format(opt.names and "name" or "children", rest[1])
  end
  if rest[1]:find("^[^/]*:%d+$") and not files.stat(rest[1]) then
    return ("expected a PID, got '%s'; did you mean '--listen=%s'?"):format(rest[1], rest[1])
  end
  local pid_file_text = targets.pid_file_text("serve", rest[1])
  if pid_file_text then return pid_file_text end
  for _, path in ipairs(rest) do
    if path:find("^%d+$") then
      return ("expected programs or files, got '%s' and '%s'%s"):format(rest[1], path,
	files.stat(path) and ("; ./%s is a file"):format(path) or "")
    end
  end
end

-- Returns a sentence on a file that is no profile, or nil.
local function wrong_file(path)
  if path == "-" then return "standard input cannot be read again; expected a FILE" end
  local st = files.stat(path)
  if st and st.kind == "other" then return path .. ": each request reads it again; expected a regular file" end
  local file, why = regular.stream(path)
  if not file then
    local name = path:find("^[^/]+$") and ("; --name=%s means live programs of this name"):format(path) or ""
    return ("%s: %s%s"):format(path, why, name)
  end
  file:close()
  local is_profile, other = reader.is_profile(path)
  if not is_profile then return ("%s: %s"):format(path, other) end
end

-- Returns names for the first line.
local function shown(names)
  local more = #names - SHOWN
  return table.concat(names, ", ", 1, math.min(#names, SHOWN)) .. (more > 0 and (" and %d more"):format(more) or "")
end

-- Returns open(say) for endpoints.new(). A later process that has the number of one of rest is not meant.
local function opener(opt, rest)
  local started = {}
  for _, word in ipairs(rest) do started[word] = processes.start_time(tonumber(word)) end
  return function(say)
    local left = {}
    for _, word in ipairs(rest) do
      local now = processes.start_time(tonumber(word))
      if now and started[word] and now ~= started[word] then
	say(("process %s has ended, and another process has its number"):format(word))
      else
	left[#left + 1] = word
      end
    end
    if #left == 0 and not opt.names then return {} end
    return targets.open({ say = say }, opt, left)
  end
end

-- Returns what endpoints.new() takes, and its names; or nil.
local function programs_of(this, opt, rest)
  local open, names = opener(opt, rest), {}
  for i, program in ipairs(open(this.say)) do
    names[i] = programs.name(program.facts)
    requests.close(program)
  end
  if #names == 0 then return nil end
  return { note = this.say, open = open }, names
end

local function files_of(this, rest)
  for _, path in ipairs(rest) do
    local wrong = wrong_file(path)
    if wrong then
      this.say(wrong)
      return nil
    end
  end
  return { paths = rest }, rest
end

-- Returns a host as it stands in front of a port.
local function bracketed(host)
  return host:find(":", 1, true) and ("[%s]"):format(host) or host
end

-- Returns the host in the address of the server. All addresses have the name of this machine.
local function url_host(host)
  if not host or host == "0.0.0.0" or host == "::" then return tcp.own_name() end
  return bracketed((host:gsub("%%", "%%25")))
end

function verb.main(this, opt, rest)
  local wrong = wrong_arguments(opt, rest)
  if wrong then return this.usage_error(wrong) end
  local what, names
  if are_files(rest) then what, names = files_of(this, rest) else what, names = programs_of(this, opt, rest) end
  if not what then return command.FAILED end
  local address = opt.listen or { host = LOOPBACK, port = PORT }
  local listener, port, is_local = tcp.listen(address.host, address.port)
  if not listener then
    this.say(("cannot listen at %s:%d: %s; --listen=HOST:PORT names another address")
	     :format(bracketed(address.host or "*"), address.port, port))
    return command.FAILED
  end
  local where = { fd = listener, host = address.host, note = this.say }
  if not is_local then
    local value, problem = token.of_user()
    if problem then this.say(problem) end
    if not value then return command.FAILED end
    where.token = value
  end
  local signals = interrupts.begin()
  this.say(("serving %s at http://%s:%d/%s; press Ctrl-C to end")
	   :format(shown(names), url_host(address.host), port, where.token and where.token .. "/" or ""))
  server.run(where, signals, endpoints.new(what))
  signals.finish()
  return command.OK
end

return verb
