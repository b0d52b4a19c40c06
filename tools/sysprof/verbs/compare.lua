----------------------------------------------------------------------------
-- Verb 'compare': runs two commands in turn, and tells which is faster, and how sure that is.
--
-- sysprof.verbs.pairedruns runs them, sysprof.model.comparison judges, sysprof.formats.verdict prints.
----------------------------------------------------------------------------

local child = require("sysprof.base.child")
local command = require("sysprof.cli.command")
local comparison = require("sysprof.model.comparison")
local comparedruns = require("sysprof.show.comparedruns")
local optiontable = require("sysprof.base.optiontable")
local outfile = require("sysprof.formats.outfile")
local pairedruns = require("sysprof.verbs.pairedruns")
local reader = require("sysprof.read.reader")
local run = require("sysprof.verbs.run")
local runspecs = require("sysprof.cli.runspecs")
local verdict = require("sysprof.formats.verdict")
local viewspecs = require("sysprof.cli.viewspecs")

local PAIRS = 7
local HZ = 1000		-- Short runs, too, need some samples of each function.
local LIMIT = 25	-- Rows of the table.

-- -- Options -----------------------------------------------------------------

local IS_CHANGE = { slower = true, faster = true, changed = true }

local function to_condition(s)
  local what, least = s:match("^(%l+)>(%d+%.?%d*)%%$")
  what = what or s:match("^%l+$")
  if IS_CHANGE[what] and (not least or #least <= 6) then
    return { text = s, what = what, least = (tonumber(least) or 0) / 100 }
  end
  return nil, "slower, faster or changed, alone or as in slower>2%"
end

local THREADS = optiontable.key(optiontable.find("threads", "RUN"))
local SPECS = {
  { name = "repeat", short = "n", key = "pairs", arg = "N", convert = pairedruns.count, also = "pairs runs",
    brief = ("run each command N times, default %d"):format(PAIRS),
    help = { ("run each command N times, 2 to %d; default %d"):format(pairedruns.MOST, PAIRS) } },
  { name = "fail-if", key = "fail_if", arg = "CHANGE", convert = to_condition,
    brief = "status 1 if B is so, as 'slower>2%'", help = {
    "status 1 if B is surely so: slower>2%, faster>2%,",
    "changed>2%, or without a number" } },
  { name = "format", key = "format", arg = "FORMAT", choice = verdict.FORMATS,
    brief = "text, json or markdown", help = { "text (default), json or markdown" } },
  { name = "keep", key = "keep", arg = "DIR", help = { "keep the profiles of all runs in the new folder DIR" } },
  { name = "limit", key = "limit", arg = "N", number = true, help = {
    ("show at most N functions (default %d, 0: all)"):format(LIMIT) } },
}
do
  local text = ("samples a second; default %d"):format(HZ)
  local taken = { hz = { brief = text, help = { text } }, [THREADS] = {}, j = {}, O = {}, l = {}, help = {},
		  version = {} }
  for _, spec in ipairs(viewspecs.with(runspecs.SPECS, taken)) do
    if taken[spec.key] then SPECS[#SPECS + 1] = spec end
  end
end

local verb = { name = "compare", line = "run two programs in turn: is one faster?", specs = SPECS, is_script = true }

verb.help = {
  usage = "Usage: luajit-sysprof compare [options] -- COMMAND A -- COMMAND B",
  intro = [[

Runs two commands in turn and tells if B is faster or slower than A, and which
functions changed. A command is a script as of 'run', or a program on our LuaJIT;
it gets no input, and its output is lost. Instead of a command, a list of profiles
of runs, as many of A as of B.
]],
  tail = [[
Exit status: 0 success, 1 what --fail-if names is so, or unwritable output, 2 wrong
command line, or a run that failed.
]],
  example = "luajit-sysprof compare -- old.lua 100 -- new.lua 100",
}

-- -- The command line ----------------------------------------------------------

-- Returns the two lists between which "--" stands, or nil and what is wrong.
local function split(rest)
  local lists = { {} }
  for _, word in ipairs(rest) do
    if word == "--" then
      lists[#lists + 1] = {}
    else
      table.insert(lists[#lists], word)
    end
  end
  if #lists[1] == 0 then table.remove(lists, 1) end	-- Of options.parse(), if an option stands before.
  local a, b = lists[1], lists[2]
  if a and b and not lists[3] and #a > 0 and #b > 0 then return a, b end
  return nil, ("expected two commands, '-- A -- B', got %d"):format(#lists)
end

local function holds(condition, total)
  local slower, faster = total.low > condition.least, -total.high > condition.least
  return condition.what ~= "faster" and slower or condition.what ~= "slower" and faster
end

-- Returns the runs of two lists of profiles, or nil and a message.
local function of_files(a, b)
  if #a ~= #b then return nil, ("expected as many profiles of A as of B, got %d and %d"):format(#a, #b) end
  if #a < 2 then return nil, "expected at least two profiles of each" end
  local runs = { a = {}, b = {}, are_files = true }
  for i = 1, #a do runs.a[i], runs.b[i] = { paths = { a[i] } }, { paths = { b[i] } } end
  return runs
end

-- Returns the status. runs: with paths, and times if they were measured here.
local function judge(this, opt, runs)
  local found, err = comparedruns.new(runs, child.signal_that_came)
  if not found then
    if err then this.say(err) end
    return command.USAGE
  end
  local condition = opt.fail_if
  local least = condition and condition.least > 0 and condition.least or nil
  found.verdict, found.detail = comparison.verdict(found.cpu, least)
  found.condition, found.has_failed = condition and condition.text, condition and holds(condition, found.cpu) or false
  local ok
  ok, err = outfile.write(nil, function(write)
    verdict.render(found, opt.format or "text", opt.limit or LIMIT, write)
  end)
  if not ok then
    this.say(err)
    return command.FAILED
  end
  if found.has_failed then this.say("--fail-if=", condition.text, " holds") end
  return found.has_failed and command.FAILED or command.OK
end

function verb.main(this, opt, rest)
  local a, b = split(rest)
  if not a then return this.usage_error(b) end
  opt.hz, opt.jitter = opt.hz or HZ, true	-- A program in step with the clock would seem to change.
  opt.clock = "cpu"
  if reader.is_profile(a[1]) and reader.is_profile(b[1]) then
    if opt.keep then return this.usage_error("--keep is for runs; these are profiles") end
    local runs, wrong = of_files(a, b)
    if not runs then return this.usage_error(wrong) end
    return judge(this, opt, runs)
  end
  local status
  local unread = pairedruns.input_text()
  if unread then this.say(unread) end
  child.hold()
  local all, err = pairedruns.new(a, b, { pairs = opt.pairs or PAIRS, keep = opt.keep, wrong_script = run.wrong_script,
    luajit = run.luajit_options(opt), start = function(path) return run.start_options(opt, path) end })
  if not all then
    child.release()
    this.say(err)
    return command.USAGE
  end
  local ok, why = pcall(function()
    err = all:run()
    if child.signal_that_came() then return end
    if err then
      this.say(err)
      status = command.USAGE
    else
      status = judge(this, opt, all.runs)
    end
  end)
  all:finish()
  local signo = child.signal_that_came()
  if signo then child.die(signo) end
  child.release()
  if not ok then error(why, 0) end
  return status
end

return verb
