----------------------------------------------------------------------------
-- Verbs of luajit-sysprof: finds the one that the user means, and runs it.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local compare = require("sysprof.verbs.compare")
local completion = require("sysprof.cli.completion")
local doctor = require("sysprof.verbs.doctor")
local dump = require("sysprof.verbs.dump")
local files = require("sysprof.base.files")
local heap = require("sysprof.verbs.heap")
local options = require("sysprof.cli.options")
local perfmap = require("sysprof.verbs.perfmap")
local ps = require("sysprof.verbs.ps")
local readverbs = require("sysprof.verbs.readverbs")
local record = require("sysprof.verbs.record")
local run = require("sysprof.verbs.run")
local serve = require("sysprof.verbs.serve")
local stop = require("sysprof.verbs.stop")
local text = require("sysprof.base.text")
local top = require("sysprof.verbs.livetop")

local LIST = { run, record, top, dump, serve, ps, stop, perfmap }
for _, verb in ipairs(readverbs) do LIST[#LIST + 1] = verb end
LIST[#LIST + 1] = heap
LIST[#LIST + 1] = compare
LIST[#LIST + 1] = doctor

local verbs = { PROGRAM = "luajit-sysprof", LIST = LIST }

-- Words that need no verb.
local OTHERS = { "help", "--help", "--version", "--completion=bash" }

local IS_VERSION = { version = true, ["--version"] = true, ["-v"] = true, ["-V"] = true }

-- What other tools call our verbs.
local MEANT = {
  profile = "run", script = "run", exec = "run", python = "run", stat = "info",
  stats = "info", header = "info", show = "report", text = "report", flamegraph = "flame", html = "flame",
  graph = "flame", svg = "flame",
  list = "annotate", source = "annotate", lines = "annotate", bench = "compare", add = "merge", convert = "export",
  stack = "dump", stacks = "dump", backtrace = "dump", bt = "dump", threads = "dump", coroutines = "dump",
  tree = "report --format=tree", peek = "report --format=tree",
  collapse = "report --format=folded", stackcollapse = "report --format=folded", folded = "report --format=folded",
  flamgraph = "flame", detach = "stop",
  snapshot = "heap", memory = "heap", leaks = "heap",
  pprof = "export", check = "doctor", server = "serve", http = "serve", web = "serve",
}

-- The same of words without a word behind them.
local ALONE = { list = "ps", ls = "ps", status = "ps" }

-- What other tools call 'record': in any case, or with a PID behind it.
local RECORD = { attach = true, start = true, pid = true, ["-p"] = true, ["--pid"] = true }
local RECORD_PID = { profile = true }

local function by_name(name)
  for _, verb in ipairs(LIST) do
    if verb.name == name then return verb end
  end
end

local function overview()
  local lines = { "Usage: luajit-sysprof VERB [options] [FILE...]", "" }
  for _, verb in ipairs(LIST) do lines[#lines + 1] = ("  %-10s %s"):format(verb.name, verb.line) end
  lines[#lines + 1] = [[

'luajit-sysprof VERB -h' shows the common options of a verb, '--help' all of them.
Other options: --version, --completion=bash.

Examples:
  luajit-sysprof run app.lua             # records app.lua, and prints what is hot
  luajit-sysprof report                  # a table of sysprof.bin, which run writes
  luajit-sysprof run -o app.html app.lua # a flame graph
  LUAJIT_SYSPROF=fork nginx              # any program on this LuaJIT, and its workers
  LUAJIT_SYSPROF=live nginx              # a program for 'luajit-sysprof record PID', later
]]
  return table.concat(lines, "\n")
end

local function quoted(args)
  local out = {}
  for i, a in ipairs(args) do out[i] = text.quoted(a) end
  return table.concat(out, " ")
end

-- Returns what the user probably meant by a first word that is no verb, or nil.
local function meant(args)
  local first = args[1]
  local pid = first:match("^%-%-pid=(%d+)$") or first:match("^%-p(%d+)$") or first:match("^%d+$")
  local is_pid = args[2] and args[2]:find("^%d+$")
  local function with(verb) return ("did you mean '%s %s %s'?"):format(verbs.PROGRAM, verb, quoted(args)) end
  if pid then
    return ("did you mean '%s record %s'?"):format(verbs.PROGRAM, quoted { pid, unpack(args, 2) })
  elseif RECORD[first] or RECORD_PID[first] and is_pid then
    return ("did you mean '%s record %s'?"):format(verbs.PROGRAM, is_pid and quoted { unpack(args, 2) } or "PID")
  elseif MEANT[first] == "run" and args[2] and args[2]:find("%.bin$") then
    return ("did you mean '%s report %s'?"):format(verbs.PROGRAM, quoted { unpack(args, 2) })
  elseif #args == 1 and ALONE[first] then
    return ("did you mean '%s %s'?"):format(verbs.PROGRAM, ALONE[first])
  elseif MEANT[first] then
    local rest = quoted { unpack(args, 2) }
    return ("did you mean '%s %s%s'?"):format(verbs.PROGRAM, MEANT[first], rest ~= "" and " " .. rest or "")
  elseif first:sub(1, 1) == "-" then
    if args[#args]:find("^%d+$") and #args > 2 and options.knows(record.specs, first) then
      for i, a in ipairs(args) do args[i] = a == "-f" and "-o" or a end	-- Of other profilers.
      return with("record")
    end
    for _, verb in ipairs { by_name("report"), run } do
      if options.knows(verb.specs, first) then return with(verb.name) end
    end
  elseif files.stat(first) then
    return with(first:find("%.lua$") and "run" or "report")
  end
end

-- Reports a first word that is no verb.
local function unknown(this, args)
  local names, first = { "help" }, args[1]
  for _, verb in ipairs(LIST) do names[#names + 1] = verb.name end
  local found = meant(args)
  local hint = found and "; " .. found or options.did_you_mean(first, names)
  return this.usage_error(("expected a verb, got '%s'%s"):format(first, hint))
end

local function run_verb(verb, args)
  local this = command.new(verbs.PROGRAM, verb.name)
  local opt, rest = options.parse(verb.specs, args, verb.is_script)
  if not opt then return this.usage_error(rest) end
  return this.answer(opt, verb.specs, verb.help) or verb.main(this, opt, rest)
end

local function help(this, args)
  local verb = args[1] and by_name(args[1])
  if args[1] and not verb then return unknown(this, args) end
  if args[2] then return this.usage_error(("expected one verb, got '%s' and '%s'"):format(args[1], args[2])) end
  return verb and run_verb(verb, { "--help" }) or this.print(overview())
end

-- Runs a command line. Returns the status.
function verbs.main(args)
  local this, first = command.new(verbs.PROGRAM), args[1]
  local verb = first and by_name(first)
  if verb then
    return run_verb(verb, { unpack(args, 2) })
  elseif not first then
    io.stderr:write(overview())
    return command.USAGE
  elseif first == "help" or first == "-h" or first == "--help" then
    return help(this, { unpack(args, 2) })
  elseif IS_VERSION[first] then
    if args[2] then return this.usage_error(("expected no argument, got '%s'"):format(args[2])) end
    return this.answer { version = true }
  elseif first == "--completion=bash" or first == "--completion" and args[2] == "bash" then
    return this.print(completion.bash_of_verbs(verbs.PROGRAM, LIST, OTHERS))
  end
  return unknown(this, args)
end

return verbs
