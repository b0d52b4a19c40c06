----------------------------------------------------------------------------
-- Comparison of etc/check_semantics: runs programs in plain LuaJIT, and profiled at 10
-- kHz and with each allocation sampled. Prints a table of their results.
--
-- The comparison leaves out addresses and times. Where two results differ, plain LuaJIT
-- runs again. If it then differs from itself, the results are not comparable. Otherwise
-- the profiled LuaJIT runs again. A difference counts only if it comes three times.
----------------------------------------------------------------------------

local programs = require("check_programs")
local reader = require("sysprof.read.reader")
local shell_status = require("shell_status")

local build = os.getenv("SYSPROF_BUILD")
local ATTEMPTS = 3
local LIMIT = 600		-- Seconds for a run.
local PROFILE = "path=%s/profile.%%p.%%n.bin,hz=10000,clock=wall-signal+alloc/period=1/,mode=C"
local STRESS = [[-e "collectgarbage('setpause', 0) collectgarbage('setstepmul', 100)"]]

local OPTIONS = { "-joff", "-O0", "-O1", "-O2", "-O3", "-Ohotloop=1,hotexit=1",
		  "-O3 " .. STRESS, "-joff " .. STRESS }

local f = assert(io.popen("pwd"))
local here = f:read("*l")
f:close()

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

-- Removes the parts of an output that differ from run to run.
local function clean(text)
  return (text:gsub("0x%x+", "ADDRESS"):gsub("%d+%.?%d*e%-%d+", "0"):gsub("%d+%.%d+", "0")
	      :gsub("%d+:%d%d:%d%d", "TIME"):gsub("[^\n]*/bin/luajit: ", ""))
end

local function run(program, luajit, options, profiled)
  local variable = profiled and ("LUAJIT_SYSPROF='%s'"):format(PROFILE:format(here)) or ""
  local command = ("cd '%s' && %s timeout %d '%s' %s %s >'%s/out' 2>'%s/err'"):format(
    program.cwd or ".", variable, LIMIT, luajit, options, program.command, here, here)
  local status = shell_status(command)
  return { status = status, out = read("out"), err = read("err") }
end

-- Counts the samples of the written profiles, and removes the files.
local function samples()
  local list, n = io.popen("ls profile.*.bin 2>/dev/null"), 0
  for path in list:lines() do
    local p = assert(reader.read(path))
    if not p.complete then
      print("FAIL: " .. path .. ": " .. p:problem_text())
      n = -math.huge
    end
    n = n + (p:totals())
    os.remove(path)
  end
  list:close()
  return n
end

-- The result of a run, for comparison. Traces may differ from run to run.
local function shown(program, r)
  if program.part then return ("%d %s"):format(r.status, r.out:match(program.part) or "") end
  local err = r.err:gsub("%[TRACE[^\n]*\n", "")
  return clean(("%d\n%s\n%s"):format(r.status, r.out, err))
end

-- Does the program have its expected result? Compares messages of errors without place.
local function passes(program, r)
  local e = program.expected
  if not e then return true end
  local err = r.err:match(".*:.*:.*: ([^\n]*\n)") or r.err
  return r.status == e.status and (not e.out or r.out == e.out) and
	 (not e.err or err == e.err)
end

local function compare(program, options)
  local ours, plain = build .. "/bin/luajit", build .. "/plain/bin/luajit"
  local n = 0
  local result
  for _ = 1, ATTEMPTS do
    local a = run(program, plain, options)
    local b = run(program, ours, options, true)
    n = n + samples()
    local good = passes(program, a)
    if shown(program, a) == shown(program, b) and passes(program, b) == good then
      return good and program.expected and "passes" or "same", n
    end
    result = "DIFFERENT"
    local again = run(program, plain, options)
    if shown(program, a) ~= shown(program, again) or passes(program, again) ~= good then
      result = "not comparable"
    end
    program.example = { shown(program, a), shown(program, b) }
  end
  return result, n
end

-- -- Table -----------------------------------------------------------------------

io.stdout:setvbuf("line")
print(("%-22s %-30s %9s %7s %7s %7s %9s"):format("programs", "options", "programs",
  "same", "passes", "differ", "samples"))

local rows, order, failures = {}, {}, 0

local function row_of(set, options)
  local key = set .. "\0" .. options
  if not rows[key] then
    rows[key] = { set = set, options = options:gsub('%-e ".*"', "collector always"),
		  programs = 0, same = 0, passes = 0, differ = 0, samples = 0 }
    order[#order + 1] = rows[key]
  end
  return rows[key]
end

local function print_row(r)
  print(("%-22s %-30s %9d %7d %7d %7d %9d"):format(r.set, r.options, r.programs, r.same,
    r.passes, r.differ, r.samples))
end

local list = programs.list()
for i, program in ipairs(list) do
  for _, options in ipairs(program.options or OPTIONS) do
    local r = row_of(program.set, options)
    local result, n = compare(program, options)
    r.programs, r.samples = r.programs + 1, r.samples + n
    if result == "passes" then
      r.passes, r.same = r.passes + 1, r.same + 1
    elseif result == "same" then
      r.same = r.same + 1
    else
      print(("%s: %s, %s %s"):format(result, program.set, program.name, options))
      if result == "DIFFERENT" then
	r.differ, failures = r.differ + 1, failures + 1
	print(program.example[1] .. "\n-- profiled:\n" .. program.example[2])
      end
    end
  end
  local next_one = list[i + 1]
  if not next_one or next_one.set ~= program.set then
    for _, r in ipairs(order) do
      if r.set == program.set then print_row(r) end
    end
  end
end
print(("%d programs, %d differ"):format(#list, failures))
os.exit(failures == 0 and 0 or 1)
