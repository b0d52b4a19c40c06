----------------------------------------------------------------------------
-- Runs of two commands in turn, or of one, each with a profile in a folder.
--
-- The order is A B, B A, A B and so on: what drifts slowly favours neither. Each runs once
-- before, uncounted: then its files are in memory. The verb 'run' runs a script. LUAJIT_SYSPROF profiles a program.
----------------------------------------------------------------------------

local ffi = require("ffi")
local child = require("sysprof.base.child")
local files = require("sysprof.base.files")
local launch = require("sysprof.verbs.launch")
local reader = require("sysprof.read.reader")
local regular = require("sysprof.base.regular")
local system = require("sysprof.base.system")
local temporary = require("sysprof.base.temporary")
local text = require("sysprof.base.text")

ffi.cdef [[
int mkdir(const char *, unsigned int);
int access(const char *, int);
]]

local PRIVATE = 448	-- rwx------.
local X_OK = 1
local HEAD = 128	-- Bytes of a file that tell what it is.
local STDIN, STDERR = 0, 2

local pairedruns = { MOST = 1000 }	-- Pairs of runs.
local methods = {}
local mt = { __index = methods }

-- Returns the number of pairs in an option's value; or nil and what is expected.
function pairedruns.count(s)
  local n = s:find("^%d+$") and #s <= 4 and tonumber(s)
  if n and n >= 2 and n <= pairedruns.MOST then return n end
  return nil, ("a whole number from 2 to %d"):format(pairedruns.MOST)
end

-- -- Commands ------------------------------------------------------------------

local function is_program(path)
  local st = files.stat(path)
  return st and st.kind == "file" and ffi.C.access(path, X_OK) == 0
end

-- Returns the path of a program in the folders of PATH, or nil.
local function in_folders(name)
  for folder in (os.getenv("PATH") or ""):gmatch("[^:]+") do
    if is_program(folder .. "/" .. name) then return folder .. "/" .. name end
  end
end

local function is_binary_or_shell(path)
  local file = regular.stream(path)
  local head = file and file:read(HEAD) or ""
  if file then file:close() end
  return head:find("^\127ELF") or head:find("^#!") and not head:match("^[^\n]*"):find("lua", 1, true)
end

-- Returns a command { words=, program= its path, nil for a script, name= }; or nil and what is wrong.
local function command_of(words, wrong_script)
  local word = words[1]
  local program
  if files.stat(word) then
    program = is_program(word) and is_binary_or_shell(word) and (word:find("/", 1, true) and word or "./" .. word)
  elseif not word:find("/", 1, true) then
    program = in_folders(word)
  end
  local wrong = not program and (word == "-" and "standard input is no script for several runs" or wrong_script(words))
  if wrong then return nil, wrong end
  return { words = words, program = program or nil }
end

-- -- One run -------------------------------------------------------------------

local function run_program(its, options, path)
  local list = { "path=" .. path .. ".%p.%n.bin" }
  for _, name in ipairs { "hz", "jitter", "threads" } do
    local value = options[name]
    if value then list[#list + 1] = value == true and name or ("%s=%s"):format(name, value) end
  end
  launch.restore_environment()
  child.setenv("LUAJIT_SYSPROF", table.concat(list, ","))
  local status, signo, why = child.run(its.program, its.words, true)
  child.setenv("LUAJIT_SYSPROF", nil)
  return status, signo, why
end

local function profiles_at(its, path)
  return its.program and files.matching(path:gsub("[%*%?%[%]\\]", "\\%0") .. ".*.bin") or { path .. ".bin" }
end

-- Says that a run failed, or nil.
local function failure(name, status, signo, why)
  if why then return ("%s: %s"):format(name, why) end
  if signo then return ("signal %d ended %s; no times are shown"):format(signo, name) end
  return status ~= 0 and ("%s ended with status %d; no times are shown"):format(name, status) or nil
end

-- Returns a run { paths=, cpu=, wall= in seconds, load= of the machine before }, or nil, a sentence, and a signal.
function methods:one(side, number)
  local its = self.commands[side]
  local path = ("%s/%s%0" .. #tostring(self.pairs) .. "d"):format(self.folder, side, number)
  local name = number == 0 and "the first run" or ("run %d"):format(number)
  if self.commands.b then name = ("%s of %s"):format(name, side:upper()) end
  local options = self.start(its.program and path or path .. ".bin")
  local load = tonumber((files.text("/proc/loadavg") or ""):match("^[%d.]+"))
  local cpu, wall = child.cpu_seconds(), system.now()
  local status, signo, why
  if its.program then
    status, signo, why = run_program(its, options, path)
  else
    status, signo, why = launch.run(options, self.luajit, its.words, true)
  end
  local one = { cpu = child.cpu_seconds() - cpu, wall = system.now() - wall, load = load }
  local came = child.signal_that_came()
  if came then return nil, nil, came end
  local wrong = failure(name, status, signo, why)
  if wrong then return nil, wrong end
  one.paths = profiles_at(its, path)
  if #one.paths == 0 then
    return nil, ("%s wrote no profile; 'luajit-sysprof doctor %s' tells which LuaJIT it loads")
		:format(name, text.quoted(its.words[1]))
  end
  for _, profile in ipairs(one.paths) do
    if not reader.is_profile(profile) then return nil, ("%s wrote no whole profile"):format(name) end
  end
  return one
end

-- -- API -----------------------------------------------------------------------

-- a, b: lists of words; b may be nil. options:
--   pairs          how often each command runs
--   keep           a new folder for the profiles, or nil
--   wrong_script   of the verb 'run'
--   luajit         options of luajit
--   start(path)    returns options of misc.sysprof.start
-- Returns an object with runs { a=, b= }, lists of runs; or nil and a message.
function pairedruns.new(a, b, options)
  local self = { commands = {}, pairs = options.pairs, luajit = options.luajit, start = options.start,
		 is_kept = options.keep ~= nil, runs = { a = {}, b = {} } }
  local err
  for side, words in pairs { a = a, b = b } do
    self.commands[side], err = command_of(words, options.wrong_script)
    if not self.commands[side] then return nil, err end
    self.runs[side].words = words
  end
  if options.keep then
    if ffi.C.mkdir(options.keep, PRIVATE) ~= 0 then
      return nil, ("cannot make the folder %s: %s"):format(options.keep, files.reason())
    end
    self.folder = files.real_path(options.keep)
  else
    self.folder, err = temporary.new_folder()
    self.folder = self.folder and files.real_path(self.folder)
    if not self.folder then return nil, err end
  end
  return setmetatable(self, mt)
end

-- Says that the commands do not get what waits at standard input, or nil: each run would need it again.
function pairedruns.input_text()
  return system.unread(STDIN) > 0 and "standard input is left out: each run reads /dev/null" or nil
end

local function tell(s)
  if ffi.C.isatty(STDERR) == 0 then return end
  io.stderr:write("\r\27[K", s)
  io.stderr:flush()
end

-- Runs all, while the caller holds signals. Returns nil; or a sentence, if one failed; or nil and the signal that came.
function methods:run()
  local has_two = self.commands.b ~= nil
  for number = 0, self.pairs do
    tell(number == 0 and "first runs, uncounted" or
	 ("%s %d of %d"):format(has_two and "pair" or "run", number, self.pairs))
    for _, side in ipairs(not has_two and { "a" } or number % 2 == 0 and { "b", "a" } or { "a", "b" }) do
      local one, err, signo = nil, nil, child.signal_that_came()
      if not signo then one, err, signo = self:one(side, number) end
      if not one then
	tell("")
	return err, signo
      end
      if number > 0 then
	self.runs[side][number] = one
      else
	for _, path in ipairs(one.paths) do os.remove(path) end
      end
    end
  end
  tell("")
end

-- Removes the folder, unless it is kept.
function methods:finish()
  if self.is_kept then return end
  for _, path in ipairs(files.matching(self.folder:gsub("[%*%?%[%]\\]", "\\%0") .. "/[ab]*")) do os.remove(path) end
  os.remove(self.folder)
end

return pairedruns
