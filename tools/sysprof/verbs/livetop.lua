----------------------------------------------------------------------------
-- Verb 'top': the hottest functions of programs that run, renewed each second.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local child = require("sysprof.base.child")
local files = require("sysprof.base.files")
local keys = require("sysprof.terminal.keys")
local limits = require("sysprof.base.limits")
local optiontable = require("sysprof.base.optiontable")
local reader = require("sysprof.read.reader")
local recording = require("sysprof.live.recording")
local requests = require("sysprof.live.requests")
local room = require("sysprof.model.room")
local runspecs = require("sysprof.cli.runspecs")
local system = require("sysprof.base.system")
local targets = require("sysprof.cli.targets")
local terminal = require("sysprof.terminal.terminal")
local text = require("sysprof.base.text")
local topscreen = require("sysprof.terminal.topscreen")
local topsums = require("sysprof.terminal.topsums")
local wanted = require("sysprof.cli.wanted")
local windows = require("sysprof.live.windows")

local NAMES_MS = 100	-- A VM that sleeps or stays in compiled code tells no names: the next window waits no longer.
local CLOCK_SECONDS = 1	-- Between two looks at the clock and the size.
local KEY_SECONDS = 0.05	-- From the first byte of a key to its last one.
local FIND_SECONDS = 2	-- Between two looks for new programs of --name and --children.
local LATE_SECONDS = 10
local NAME_BYTES, PIDS = 60, 20

-- -- The command line ------------------------------------------------------

local TABLES = {}
for i, its in ipairs(topsums.TABLES) do TABLES[i] = its.by end

local SPECS = targets.specs({
  { name = "once", key = "once", brief = "print one table and end, for scripts", help = {
    "record for the time of --duration, print one table and",
    "end; the default if the output is no terminal" } },
  { name = "by", key = "by", arg = "WHAT", choice = TABLES, help = {
    ("the first table: %s;"):format(table.concat(TABLES, ", ")),
    ("%s (default): Lua functions; vmstate: states of VMs"):format(TABLES[1]) } },
}, runspecs.of("TOP", { "event", "help", "version" }))

-- -- What is shown ---------------------------------------------------------

-- Returns what names the programs.
local function title_of(list)
  local names, pids, taken = {}, {}, {}
  for i, its in ipairs(list) do
    local name = text.short(its.facts.name, NAME_BYTES)
    if not taken[name] then names[#names + 1], taken[name] = name, true end
    if i <= PIDS then pids[i] = its.pid end
  end
  local more = #list > PIDS and " ..." or ""
  if #list == 1 then return ("%s, PID %d"):format(names[1], pids[1]) end
  return ("%s, %d processes: %s%s"):format(table.concat(names, ", "), #list, table.concat(pids, " "), more)
end

-- Collects windows into rounds. Returns an object:
--   take(program, path)   for windows:step()
--   close(is_last)        adds a round to the sums if each program that records has told one, or all that there is;
--                         returns whether it did
--   lacks                 whether a window lacked something
local function new_rounds(sums, recorded, seconds)
  local self, waiting, count, told = {}, {}, 0, {}
  local since = system.now()
  -- The profiles of a round share their room.
  local function new_options() return room.shared({ live = true, most = limits.WINDOW_BYTES }) end
  local options = new_options()

  local function say(its, sentence) its.note = ("process %d: %s"):format(its.pid, sentence) end

  local function say_lack(its, sentence)
    self.lacks = true
    say(its, sentence)
  end

  function self.take(its, path)
    local profile, err = reader.read(path, options)
    local foreign = profile and recording.foreign(profile, its.facts)
    if foreign then
      its.note = foreign
    elseif profile then
      count = count + 1
      waiting[count], told[its] = { its, profile }, true
      if not profile.complete and not its.ended then say_lack(its, profile:problem_text()) end
    elseif not its.ended then
      local st = files.stat(path)
      local is_told = its.note and st and st.size == 0	-- The program has said why it recorded nothing.
      if not is_told then say(its, err) end
    end
  end

  function self.close(is_last)
    local is_whole, now = count > 0, system.now()
    for _, its in ipairs(recorded.list) do is_whole = is_whole and (told[its] or its.is_late or not its.path) end
    local is_late = now > since + 2 * seconds + 1
    if not is_whole and not is_late and not (is_last and count > 0) then return false end
    sums:begin_round()
    for _, window in ipairs(waiting) do
      local its = window[1]
      local missing = sums:add(its.pid, window[2])
      if missing then say_lack(its, missing) end
    end
    local any = count > 0
    waiting, count, told, since, options = {}, 0, {}, now, new_options()
    return any
  end

  return self
end

-- -- Once ------------------------------------------------------------------

local function once(this, recorded, screen, rounds, seconds)
  local limit = system.now() + seconds + LATE_SECONDS
  local done = {}
  local function take(its, path)
    rounds.take(its, path)
    done[its] = true
  end
  local function is_over()
    for _, its in ipairs(recorded.list) do
      if not done[its] then return false end
    end
    return true
  end
  recorded.is_once = true
  while not is_over() and system.now() < limit do
    recorded:step(system.wait(recorded:fds(), CLOCK_SECONDS), take)
  end
  recorded:close()
  screen.has_window = rounds.close(true)
  for _, sentence in ipairs(recorded.sentences) do this.say(sentence) end
  local has_failed = false
  for _, its in ipairs(recorded.list) do
    if its.note then this.say(its.note) end
    has_failed = has_failed or its.has_failed
  end
  if has_failed and screen.sums.samples == 0 then return command.FAILED end
  if not screen.has_window then return command.FAILED end
  local status = this.print(screen:text())
  return status == command.OK and rounds.lacks and command.INCOMPLETE or status
end

-- -- The screen ------------------------------------------------------------

-- Shows and records until the user quits, all programs have ended, or a signal comes. Returns the signal. find(list)
-- opens new programs; nil: none are wanted.
local function watch(recorded, screen, rounds, find, tty)
  local input, begun, size = keys.new(), system.now(), ""
  local is_old, ends = true, nil
  local drawn, looked = 0, begun
  while true do
    local fds = recorded:fds()
    fds[#fds + 1] = tty.fd
    fds[#fds + 1] = tty.input
    local ready = system.wait(fds, input.is_open() and KEY_SECONDS or CLOCK_SECONDS)
    if ready[tty.fd] then ends, is_old, size = tty.take_signals(), true, "" end
    local typed = tty.input and ready[tty.input] and tty.read()
    if typed == "" then tty.input = nil end
    for _, key in ipairs(input.take(typed or "", not typed)) do
      screen:press(key)
      is_old = true
    end
    recorded:step(ready, rounds.take)
    if rounds.close(#recorded.list == 0) then screen.has_window, is_old = true, true end
    if #recorded.list > 0 then screen.title = title_of(recorded.list) end
    if ends or screen.is_over or #recorded.list == 0 then return ends end
    local now = system.now()
    if find and now >= looked + FIND_SECONDS then
      for _, its in ipairs(find(recorded.list)) do recorded:add(its) end
      looked = now
    end
    local width, height = tty.size()
    if is_old or now >= drawn + CLOCK_SECONDS or size ~= width .. " " .. height then
      screen.note, screen.seconds = recorded:note(), now - begun
      local picture = topscreen.paint(screen:lines(width, height), width)
      if size ~= width .. " " .. height then picture = "\27[0m\27[2J" .. picture end
      if not tty.write(picture) then return end
      size, drawn, is_old = width .. " " .. height, now, false
    end
  end
end

local function interactive(this, recorded, screen, rounds, find)
  local tty = terminal.begin()
  local ok, ends = xpcall(watch, function(err) return err end, recorded, screen, rounds, find, tty)
  recorded:close()
  tty.finish()
  if not ok then error(ends, 0) end
  if ends and ends ~= system.SIGINT then child.die(ends) end
  if ends or screen.is_over then return command.OK end
  local status = this.print(screen:text(true))
  for _, sentence in ipairs(recorded.sentences) do this.say(sentence) end
  return status
end

-- -- API -------------------------------------------------------------------

local verb = { name = "top", line = "show the hottest functions of programs that run", specs = SPECS }

verb.help = {
  usage = "Usage: luajit-sysprof top [options] PID...",
  intro = [[

Records live programs again and again, and shows what is hot: in the last second, and since
the start. 'luajit-sysprof ps' lists them. '?' shows the keys, 'q' quits.
]],
  tail = [[
Exit status: 0 success, 1 no program could be recorded, 2 wrong command line, 3 the
table lacks samples (with --once).
]],
  example = "luajit-sysprof top --name=nginx",
}

function verb.main(this, opt, rest)
  local row = optiontable.find("duration", "TOP")
  opt.duration = opt.duration or optiontable.value(row, row.default)
  local wrong = targets.wrong("top", opt, rest) or wanted.contradiction(opt)
  if not wrong and wanted.names(opt.event or "")[1] == "live" then
    wrong = "top shows no live memory; 'luajit-sysprof record -e alloc PID' records it, 'report --event=live' shows it"
  end
  if wrong then return this.usage_error(wrong) end
  opt.clock = opt.event
  local unused = wanted.unused(opt)
  if unused then this.say(unused) end
  local values = wanted.request(opt, "TOP")
  values.finish = not opt.once and NAMES_MS or nil
  local recorded = windows.open(targets.open(this, opt, rest), values, opt.duration)
  local is_wrong = false
  for _, sentence in ipairs(recorded.sentences) do
    this.say(sentence)
    is_wrong = is_wrong or requests.is_wrong_event(sentence)
  end
  recorded.sentences = {}
  if #recorded.list == 0 then return is_wrong and command.USAGE or command.FAILED end
  local sums = topsums.new()
  local screen = topscreen.new(title_of(recorded.list), sums, { by = opt.by, plain = not terminal.has_utf8() })
  local rounds = new_rounds(sums, recorded, opt.duration)
  child.ignore_pipe()
  if opt.once or not terminal.exists() then
    screen.plain = false
    return once(this, recorded, screen, rounds, opt.duration)
  end
  local function find(list) return targets.open_more(opt, rest, list) end
  return interactive(this, recorded, screen, rounds, (opt.names or opt.children) and find)
end

return verb
