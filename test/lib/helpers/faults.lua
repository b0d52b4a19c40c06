----------------------------------------------------------------------------
-- Faults by ordinal: the first, second, .. call of a function in the profiler fails, and
-- a program with a known result runs on. See fail_call.c and fault_program.lua.
--
-- Whatever fails, the tests demand:
-- - The program ends by itself with its own results.
-- - start and stop report the failure by its errno, a failure of the file with its name.
-- - The file is complete, or readable up to its cut. Its samples and the lost ones add up.
-- - A failed start leaves nothing. No descriptor, thread, timer or signal handler leaks.
-- - The next profile is complete.
----------------------------------------------------------------------------

local coverage = require("coverage")
local reader = require("sysprof.read.reader")
local shell_status = require("shell_status")

local faults = {}

local TIMEOUT = 200	-- Seconds after which a run counts as hung.
local CALLS_EACH = 30	-- The tests try all ordinals up to here. Beyond, each ordinal is
			-- half as large again as the last.

local OLD = "ljs\3, which was there before"

faults.errno = {
  EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, EAGAIN = 11, ENOMEM = 12,
  ENXIO = 6, EBADF = 9, EACCES = 13, EFAULT = 14, EEXIST = 17, EINVAL = 22, EMFILE = 24, EFBIG = 27,
  ENOSPC = 28, EROFS = 30, EPIPE = 32,
  ENOSYS = 38, ENODATA = 61, short = "short",
}

-- Faults that the profiler repairs at once: no sample may be missing.
local MADE_GOOD = { ["realtime short"] = true, ["pread64 EINTR"] = true, ["write short"] = true, ["write EINTR"] = true }

-- If the profiler can read only a part of a file, the file may belong to another program.
local IN_DOUBT = { ["pread64 short"] = faults.errno.EEXIST }

-- Calls that come after the beginning of the stream, so their failure leaves a file.
local AFTER_BEGIN = { write = true, ftruncate64 = true, timer_settime = true, setitimer = true,
		      ioctl = true, unlinkat = true, fstat64 = true }

-- -- Running ---------------------------------------------------------------

local function read_file(path)
  local f = io.open(path, "rb")
  if not f then return nil end
  local s = f:read("*a")
  f:close()
  return s
end

local function write_file(path, s)
  local f = assert(io.open(path, "wb"))
  f:write(s)
  f:close()
end

-- Both numbers of the log are small.
local function log_numbers(s)
  local function number(at)
    local a, b, c = s:byte(at, at + 2)
    return a + 256*b + 65536*c
  end
  return number(1), number(9)
end

local faulty = os.getenv("SYSPROF_BUILD") .. "/test/faulty_luajit"
local program = os.getenv("SYSPROF_SOURCE") .. "/test/lib/programs/fault_program.lua"

-- Runs a scenario with a fault. Returns the status, the output, the outcome or nil, the
-- number of calls and the number of failures.
local function run(scenario, fault)
  if fault.old then write_file("old", OLD) end
  local command = ("FAULT='%s %s %s' FAULT_LOG=log LIMITS='%s' timeout -s ABRT %d '%s' '%s' %s %s outcome.lua %s >out 2>err")
    :format(fault.call, fault.nth or 1, faults.errno[fault.errno], fault.limits or "", TIMEOUT, faulty,
      program, scenario, fault.path or "p.bin", fault.code and "'" .. fault.code .. "'" or "")
  local status = shell_status(("rm -f p.bin* outcome.lua log; %s %s %s %s"):format(
    fault.old and "mv old p.bin;" or "", fault.before or "", command, fault.after or ""))
  local outcome = loadfile("outcome.lua")
  local calls, failures = log_numbers(read_file("log"))
  return status, read_file("out"), outcome and outcome(), calls, failures
end

-- -- Judging ---------------------------------------------------------------

-- Reports of the profiles into the file.
local function reports_of(o)
  if not o.first_report then return { o.report } end
  return o.second_start.ok and { o.first_report, o.report } or { o.first_report }
end

-- Judges the file of a started profile. Returns a word for its state, the number of its
-- samples, and the fault or nil.
local function judge_file(o, stopped_well, is_gone)
  local text = read_file("p.bin")
  local lost, all = 0, 0
  for _, r in ipairs(reports_of(o)) do
    lost = lost + r.lost.buffer + r.lost.queue + r.lost.writer
    all = all + r.samples
  end
  if not text then return "none", 0, not is_gone and "there is no file" or nil end
  local p, err = reader.parse_string(text)
  if not p then
    if lost ~= all then return "nothing", 0, ("unreadable: %s; %d of %d samples lost"):format(err, lost, all) end
    return "nothing", 0, stopped_well and "unreadable: " .. err
  end
  local c = coverage.of(p)
  local wrong
  if stopped_well and not p.complete then
    wrong = p:problem_text()
  elseif stopped_well and not o.first_report and not o.child then
    wrong = coverage.inconsistency(p, o.report)
  elseif is_gone then
    wrong = (p.complete or c.samples == 0) and "the reader does not report the loss" or nil
  elseif c.samples + lost ~= all then
    wrong = ("%d samples in the file and %d lost, %d taken"):format(c.samples, lost, all)
  end
  return p.complete and "whole" or "cut", c.samples, wrong
end

local function table_differs(a, b)
  for key, value in pairs(a) do
    if b[key] ~= value then return ("%s: %s, not %s"):format(key, b[key], value) end
  end
end

-- The result of start or stop must name the failure.
local function judge_error(fault, result, is_stop)
  if result.ok then return end
  if MADE_GOOD[fault.call .. " " .. fault.errno] then return "a repairable fault is an error" end
  if result.err ~= faults.errno[fault.errno] and result.err ~= IN_DOUBT[fault.call .. " " .. fault.errno] then
    return ("the errno is %s: %s"):format(tostring(result.err), tostring(result.message))
  end
  if not result.message or #result.message < 5 then return "no message" end
  if is_stop and not result.message:find(fault.path or "p.bin", 1, true) then
    return "the message does not name the file: " .. result.message
  end
end

local function judge_child(o)
  if not o.child then return end
  if o.child_status ~= 0 then return ("the child's status is %x"):format(o.child_status) end
  local text = read_file("p.bin." .. o.child)
  local p, err = reader.parse_string(text or "")
  if text and text ~= "" and not p then return "the child's file: " .. err end
end

local function judge(scenario, fault, status, out, o, expected)
  if not o then
    return ("status %d: %s"):format(status, (read_file("err") or ""):sub(1, 200))
  end
  if status ~= 0 then return ("status %d"):format(status) end
  if out ~= expected then return "another result: " .. out end
  local wrong = judge_error(fault, o.start) or
    (o.second_start and judge_error(fault, o.second_start)) or
    (o.start.ok and (judge_error(fault, o.first_stop or { ok = true }, true) or
		     judge_error(fault, o.stop or { ok = true }, true)))
  if wrong then return wrong end
  local text = read_file("p.bin")
  if o.start.ok then
    if scenario ~= "counters" and not fault.is_pipe then
      local stopped = (not o.stop or o.stop.ok) and (not o.first_stop or o.first_stop.ok) and
		      (not o.second_start or o.second_start.ok)
      o.file, o.file_samples, wrong = judge_file(o, stopped, fault.is_gone)
    end
  else
    o.file = text == OLD and "as it was" or text == nil and "none" or "begun"
    if o.file == "begun" and not AFTER_BEGIN[fault.call] then
      wrong = ("the start failed, and the file has %d bytes"):format(#text)
    end
  end
  if o.report.wall_s > TIMEOUT then wrong = ("it took %g s"):format(o.report.wall_s) end
  wrong = wrong or judge_child(o) or table_differs(o.before, o.last)
  if wrong then return wrong end
  if not o.next_start.ok or not o.next_stop.ok then
    return "the next profile: " .. tostring(o.next_start.message or o.next_stop.message)
  end
  if scenario ~= "counters" then
    local p = coverage.read("p.bin.next")
    if not p.complete then return "the next profile: " .. p:problem_text() end
  end
end

-- -- Rows ------------------------------------------------------------------

-- The results that the program saw, without the name of its file.
local function saw(o)
  local list = {}
  for _, key in ipairs { "start", "first_stop", "second_start", "stop" } do
    local result = o[key]
    if result and not result.ok then
      local message = tostring(result.message):gsub("p%.bin", "FILE"):gsub("all %d+ file", "all N file")
      list[#list + 1] = ("%s: %s (%d)"):format(key:match("%a+$"), message, result.err)
      if key == "start" then break end
    end
  end
  return #list == 0 and "nothing" or table.concat(list, "; ")
end

-- Counters of the report that are 0 without the fault.
local function reported(o, usual)
  local list, r = {}, o.report
  for _, key in ipairs { "writer", "queue", "buffer", "nested" } do
    local n = 0
    for _, each in ipairs(reports_of(o)) do n = n + each.lost[key] end
    if n > 0 then list[#list + 1] = "lost." .. key end
  end
  for _, side in ipairs { "lua", "host" } do
    for key, n in pairs(r.broken[side]) do
      if n > 0 and usual.report.broken[side][key] == 0 then
	list[#list + 1] = ("broken.%s.%s"):format(side, key)
      end
    end
  end
  if r.unsampled > usual.report.unsampled then list[#list + 1] = "unsampled" end
  if r.replaced then list[#list + 1] = "replaced" end
  if r.clock ~= usual.report.clock and r.clock ~= "" then
    list[#list + 1] = "clock = " .. r.clock
  end
  return list
end

local rows, row_of = {}, {}
local runs, failures = 0, 0
local usual = {}	-- Results of a scenario without faults; false if it does not run here.

-- Some users and machines have no events.
local function usual_of(scenario)
  if usual[scenario] == nil then
    local status, out, o = run(scenario, { call = "none", nth = 1, errno = "EIO" })
    assert(status == 0 and o and (o.start.ok or scenario == "events"),
	   ("%s without faults: status %d, %s"):format(scenario, status, read_file("err")))
    if not o.start.ok then print("skipped " .. scenario .. ": " .. tostring(o.start.message)) end
    usual[scenario] = o.start.ok and { out = out, report = o.report } or false
  end
  return usual[scenario]
end

-- A row stands for a fault and the results that the program saw. Its other cells collect
-- the values of all its runs.
local function add_row(fault, program_saw, o, u)
  local title = fault.title or ("`%s`, %s"):format(fault.call, fault.errno)
  local key = title .. "|" .. program_saw
  local row = row_of[key]
  if not row then
    row = { title = title, saw = program_saw, file = {}, reported = {}, n = 0 }
    row_of[key] = row
    rows[#rows + 1] = row
  end
  row.n = row.n + 1
  if o.file then row.file[o.file] = true end
  for _, what in ipairs(reported(o, u)) do row.reported[what] = true end
end

-- The keys of a table.
local function cell(set)
  local list = {}
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list)
  return #list == 0 and "-" or table.concat(list, ", ")
end

-- Makes one run. Returns whether the fault came.
local function try(scenario, fault)
  local u = usual_of(scenario)
  if not u then return false end
  local status, out, o, calls, hits = run(scenario, fault)
  local wrong = judge(scenario, fault, status, out, o, u.out)
  runs = runs + 1
  if wrong then
    failures = failures + 1
    print(("FAIL: %s: %s %s %s (%d calls, %d failed): %s"):format(scenario, fault.call, fault.nth,
      fault.errno, calls, hits, wrong))
  elseif hits > 0 then
    add_row(fault, saw(o), o, u)
  end
  return hits > 0
end

-- Ordinals to try. Without the variable the test is brief: two ordinals, the first and the
-- last errno. The last errno fails one call; only `short` and EINTR fail all.
local LONG = tonumber(os.getenv("SYSPROF_FAULTS"))
local LIMIT = LONG or 2

-- Makes a call fail: the first, the second, .. up to the last one or the limit. Then makes
-- all calls fail, and all except the first.
local function each(scenario, call, errno, o)
  local nth, last = 1, 0
  for _ = 1, math.min(o.limit or LIMIT, LIMIT) do
    local old = o.old or (nth % 2 == 0 and scenario ~= "shared")
    if not try(scenario, { call = call, nth = nth, errno = errno, old = old }) then break end
    last = nth
    nth = nth < CALLS_EACH and nth + 1 or math.ceil(nth * 1.5)
  end
  if last > 0 and not o.once and not MADE_GOOD[call .. " " .. errno] then
    try(scenario, { call = call, nth = "1+", errno = errno })
    if last > 1 and LONG then try(scenario, { call = call, nth = "2+", errno = errno }) end
  end
end

-- -- The table -------------------------------------------------------------

-- Prints the table and ends the program. Status 0: all held; 77: no fault came.
function faults.finish()
  print("\n| fault | the program saw | the file | reported | runs |\n|---|---|---|---|---|")
  for _, row in ipairs(rows) do
    print(("| %s | %s | %s | %s | %d |"):format(row.title, row.saw, cell(row.file), cell(row.reported), row.n))
  end
  print(("\n%d runs, %d failed"):format(runs, failures))
  os.exit(failures > 0 and 1 or runs == 0 and 77 or 0)
end

-- Tries a list of faults: { calls, errnos, scenarios, options }. Then ends the program, see
-- faults.finish. Options: once: only one call fails, for calls that the profiler repeats
-- after a failure; limit: ordinals to try; old: the file holds an old profile.
function faults.all(list)
  io.stdout:setvbuf("line")
  for _, entry in ipairs(list) do
    for _, call in ipairs(entry[1]) do
      for i, errno in ipairs(entry[2]) do
	if not LONG and i > 1 and i < #entry[2] then goto continue end
	local o = entry
	if not LONG and i > 1 and errno ~= "short" and errno ~= "EINTR" then
	  o = { limit = entry.limit, once = true, old = entry.old }
	end
	for _, scenario in ipairs(entry[3]) do each(scenario, call, errno, o) end
	::continue::
      end
    end
  end
  faults.finish()
end

-- Tries an event that hits the program or its file. what has title, scenario, and any of
--   errno         errno that start or stop reports; without it, they report nothing
--   code          runs in mid-stream, see fault_program.lua
--   limits        "RESOURCE=VALUE", in numbers: soft limit during the profile
--   path          another path than p.bin
--   before, after shell code around the program
--   maybe         start and stop may report nothing
--   is_gone       another program has removed bytes of the file
--   status        status of a program that is killed
function faults.happens(what)
  io.stdout:setvbuf("line")
  local u = usual_of(what.scenario)
  if not u then return end
  local fault = { call = "none", nth = 1, errno = what.errno or "EIO" }
  for key, value in pairs(what) do fault[key] = value end
  local status, out, o = run(what.scenario, fault)
  local wrong
  runs = runs + 1
  if what.status then
    wrong = faults.judge_ended(what, status)
    o = { file = "cut, readable", start = { ok = true }, report = u.report }
  else
    wrong = judge(what.scenario, fault, status, out, o, u.out)
    local said = not wrong and saw(o)
    if said == "nothing" and what.errno and not what.maybe then
      wrong = "start and stop report nothing"
    elseif said and said ~= "nothing" and not what.errno then
      wrong = said
    end
  end
  if wrong then
    failures = failures + 1
    print(("FAIL: %s, %s: %s"):format(what.scenario, what.title, wrong))
    return
  end
  add_row(fault, what.status and "its end" or saw(o), o, u)
end

-- Judges a killed program: the reader reads its file up to the cut.
function faults.judge_ended(what, status)
  if status ~= what.status then return ("status %d"):format(status) end
  local p, err = reader.parse_string(read_file("p.bin") or "")
  if not p then return err end
  if p.complete then return "the reader does not report the missing end" end
  if #p.problems > 1 then return "more than the end is missing: " .. p:problem_text() end
  if coverage.of(p).samples == 0 then return "no samples" end
end

return faults
