----------------------------------------------------------------------------
-- Runs random programs under the profiler, and judges their stacks in each format.
--
-- A program and the JIT's options follow from one number. What fails is kept: the program, its
-- profile, and what is wrong. See random_program.lua and legal_stacks.lua.
----------------------------------------------------------------------------

local legal_stacks = require("legal_stacks")
local random_program = require("random_program")
local shell_status = require("shell_status")
local t = require("tools_test")

local random_stacks = {}

local SAMPLES = 5000		-- Of a program,
local SECONDS = 10		-- or so long.
local TIMEOUT = 120		-- Seconds until a program hangs.
local BROKEN_SHARE = 0.005	-- Of all samples, at most.
local FAULTS_SHOWN = 3

local SETTINGS = {
  { name = "JIT off", options = "-joff", jit_off = true },
  { name = "JIT on", options = "-O3" },
  { name = "hot at once", options = "-Ohotloop=1 -Ohotexit=1" },
  { name = "-O1", options = "-O1" },
  { name = "little machine code", options = "-O3 -Omaxmcode=32 -Osizemcode=32" },
}

local EVENTS = { "ticks", "allocations", "waits" }

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- Runs a program in a folder. Returns what is wrong as text, "" for nothing, and the results.
local function run_program(folder, seed, setting, event)
  local text, list = random_program.make(seed, not setting.jit_off, event)
  t.write_file(folder .. "/" .. random_program.FILE, text)
  local status, _, err = t.shell(("cd %s && timeout %d %s %s %s %d p.bin %d"):format(
    quoted(folder), TIMEOUT, quoted(t.luajit), setting.options, random_program.FILE, SAMPLES,
    SECONDS))
  if status ~= 0 then return ("it ended with %d: %s"):format(status, err), {} end
  local samples, results = legal_stacks.judge(list, folder .. "/p.bin")
  if not samples then return results, {} end
  local wrong = {}
  for _, r in ipairs(results) do
    for i = 1, math.min(FAULTS_SHOWN, #r.faults) do wrong[#wrong + 1] = r.faults[i] end
    if r.is_whole and r.samples ~= samples then
      wrong[#wrong + 1] = ("%s has %d of %d samples"):format(r.title, r.samples, samples)
    end
  end
  return table.concat(wrong, "\n"), results
end

local function add_results(sums, results)
  for i, r in ipairs(results) do
    local sum = sums[i] or { title = r.title, samples = 0, gaps = 0, broken = 0, illegal = 0 }
    sums[i] = sum
    for _, key in ipairs { "samples", "gaps", "broken", "illegal" } do sum[key] = sum[key] + r[key] end
  end
end

-- Prints the sums of an event. Returns whether too many samples are broken.
local function print_sums(sums, event)
  print(("%-28s %10s %10s %10s"):format(event, "stacks", "broken", "illegal"))
  local bad = false
  for _, s in ipairs(sums) do
    local stacks = s.samples - s.gaps
    print(("%-28s %10d %10d %10d"):format(s.title, stacks, s.broken, s.illegal))
    bad = bad or s.broken > BROKEN_SHARE * stacks
  end
  if bad then print(("more than %g %% of the samples are broken"):format(100 * BROKEN_SHARE)) end
  return bad
end

-- Runs the programs seed, seed + 1 and so on for some seconds, one at least. keep: an empty
-- folder for those that fail. Prints what it found; returns whether all was right.
function random_stacks.run(seed, seconds, keep)
  local till, programs, is_right, sums = os.time() + seconds, 0, true, {}
  for _, event in ipairs(EVENTS) do sums[event] = {} end
  print(("seed %d"):format(seed))
  repeat
    local number = seed + programs
    local setting, event = SETTINGS[number % #SETTINGS + 1], EVENTS[number % #EVENTS + 1]
    local folder = ("%s/%d"):format(keep, number)
    assert(shell_status("mkdir " .. quoted(folder)) == 0, "cannot make a folder")
    local wrong, results = run_program(folder, number, setting, event)
    programs = programs + 1
    add_results(sums[event], results)
    if wrong == "" then
      os.execute("rm -r " .. quoted(folder))
    else
      is_right = false
      t.write_file(folder .. "/wrong", wrong .. "\n")
      print(("program %d, %s, %s (luajit %s), is kept in %s\n%s"):format(number, event, setting.name,
	setting.options, folder, wrong))
    end
  until os.time() >= till
  print(("%d programs"):format(programs))
  for _, event in ipairs(EVENTS) do
    local bad = print_sums(sums[event], event)
    is_right = is_right and not bad
  end
  return is_right
end

return random_stacks
