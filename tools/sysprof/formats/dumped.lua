----------------------------------------------------------------------------
-- Dumps of programs as text and as JSON: stacks of threads, and coroutines.
--
-- A dump is { facts =, threads =, real =, others =, trouble =, coroutines =, silence = }: threads as of
-- sysprof.show.threadstacks, with those of procfs, or nil and the trouble; the VMs' text of coroutines or ""; why that
-- lacks VMs, or nil.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local json = require("sysprof.base.cleanjson")
local limits = require("sysprof.base.limits")
local text = require("sysprof.base.text")

local dumped = {}

local WAITING = "^%[waiting: (.*)%]$"
local TICKS = 0.012		-- Seconds on CPU that bring a sample, even by the kernel's tick.
local OTHERS = 0.001		-- Seconds on CPU of threads not sampled that are worth a line.
local ALL = 0.95		-- Part of a thread's time that a single wait fills.

-- -- States ----------------------------------------------------------------

local function duration(seconds)
  if seconds < 0.00095 then return ("%.2g ms"):format(seconds * 1e3) end
  if seconds < 0.0995 then return ("%.0f ms"):format(seconds * 1e3) end
  return ("%.2g s"):format(seconds)
end

-- Returns the seconds of a thread in all states.
local function seconds_of(thread) return thread.on + thread.waiting + thread.runnable + thread.lost end

-- Returns how the time of a thread was spent, or nil.
local function shares(thread)
  local list, all = {}, seconds_of(thread)
  for _, pair in ipairs { { thread.on, "on CPU" }, { thread.waiting, "waiting" },
			  { thread.runnable, "without a processor" }, { thread.lost, "unknown, as records are lost" } } do
    local percent = 100 * pair[1] / math.max(all, 1e-9)
    if percent >= 1 then list[#list + 1] = ("%.0f %% %s"):format(percent, pair[2]) end
  end
  return #list > 0 and table.concat(list, ", ") or nil
end

-- Returns the state of a thread as a word, and what it waits for.
function dumped.state(thread)
  if not thread.frames then return "unknown" end
  if not thread.wait then return "running" end
  return "waiting", thread.wait:match(WAITING) or thread.wait:match("^%[(.*)%]$")
end

-- Why the waits of a thread have no stack.
local UNSEEN = {
  short = "its waits were too short",
  [G.SPF_UNSEEN_LATE] = "the profiler came too late for its waits",
  [G.SPF_UNSEEN_MOVED] = "it went on while its stack was read",
  [G.SPF_UNSEEN_HIDDEN] = "the kernel hides where it waits",
}

-- Returns why a thread has no stack.
local function why_no_stack(thread)
  if thread.has_ended then return "the thread has ended" end
  if not thread.on then return "no sample" end
  if thread.waiting > thread.on + thread.runnable then return UNSEEN[thread.unseen] or UNSEEN.short end
  if thread.on <= TICKS then return "it had no processor" end
  return thread.blocks and "it blocks signals" or "no tick of the clock came"
end

-- Returns the state of a thread as a text.
local function state_text(thread)
  local state, what = dumped.state(thread)
  local times = thread.on and not thread.has_ended and shares(thread)
  if state == "unknown" then return ("no stack: %s%s"):format(why_no_stack(thread), times and "; " .. times or "") end
  if state == "running" then return times and "running; " .. times or "running" end
  if thread.seconds >= ALL * seconds_of(thread) then
    return ("waiting: %s, for at least %s"):format(what, duration(thread.seconds))
  end
  return ("waiting: %s, for %s%s"):format(what, duration(thread.seconds), times and "; " .. times or "")
end

-- -- Text ------------------------------------------------------------------

local function frame_text(frame)
  return frame.text .. (frame.kind == "compiled" and " [compiled]" or "")
end

local function write_frames(write, frames)
  local i = 1
  while i <= #frames do
    local line, same = frame_text(frames[i]), 1
    while frames[i + same] and frame_text(frames[i + same]) == line do same = same + 1 end
    write(("    %s%s\n"):format(line, same > 1 and (" [%d times]"):format(same) or ""))
    i = i + same
  end
end

local function write_text(write, dump)
  local facts = dump.facts
  write(("process %d: %s\n"):format(facts.pid, text.clean(facts.program)))
  for _, thread in ipairs(dump.threads or {}) do
    local name = text.clean(thread.name or "?")
    write(("\nthread %.0f (%s): %s\n"):format(thread.tid, name, state_text(thread)))
    write_frames(write, thread.frames or {})
  end
  if (dump.others or 0) >= OTHERS then write(("\nthreads not sampled: %s on CPU\n"):format(duration(dump.others))) end
  if dump.trouble then
    write(("\nthreads %s: %s\n"):format(dump.threads and "may lack samples" or "unknown", dump.trouble))
  end
  -- Each VM's begins with the number of its process in its own namespace, and was written when the VM came to Lua code.
  local head = dump.threads and "%1 at another moment:" or "%1:"
  local body = dump.coroutines:gsub("\n(%d+ coroutines? of process)", "\n\n%1")
  body = body:gsub("%f[%d](%d+ coroutines?) of process %d+:", head)
  if body ~= "" then write("\n") end
  text.write_lines(body, write, true)	-- None could be one of ours, such as the head of a process.
  if dump.silence then write(("\ncoroutines unknown: %s\n"):format(dump.silence)) end
end

-- -- JSON ------------------------------------------------------------------

local function str(s) return text.json(text.clean(s)) end

local function frame_json(frame)
  local out = { ('"name":%s,"kind":"%s"'):format(str(frame.text), frame.kind) }
  if frame.file then out[#out + 1] = '"file":' .. str(frame.file) end
  if frame.line then out[#out + 1] = ('"line":%.0f'):format(frame.line) end
  if frame.module then out[#out + 1] = '"module":' .. str(frame.module) end
  return "{" .. table.concat(out, ",") .. "}"
end

local function thread_json(thread)
  local state, what = dumped.state(thread)
  local out = { ('"tid":%.0f,"name":%s,"state":"%s"'):format(thread.tid, str(thread.name or "?"), state) }
  if what then out[#out + 1] = ('"waits_for":%s,"waited":%.6f'):format(str(what), thread.seconds) end
  if thread.on then
    out[#out + 1] = ('"on_cpu":%.6f,"waiting":%.6f,"runnable":%.6f,"lost":%.6f')
      :format(thread.on, thread.waiting, thread.runnable, thread.lost)
  end
  if state == "unknown" then out[#out + 1] = '"stack_unknown":' .. str(why_no_stack(thread)) end
  local frames = {}
  for i, frame in ipairs(thread.frames or {}) do frames[i] = "\n  " .. frame_json(frame) end
  out[#out + 1] = '"frames":[' .. table.concat(frames, ",") .. "]"
  return "{" .. table.concat(out, ",") .. "}"
end

local function write_json(write, dump)
  local facts = dump.facts
  write(('{"pid":%d,"program":%s'):format(facts.pid, str(facts.program)))
  if dump.real then write((',"seconds":%.6f,"not_sampled":%.6f'):format(dump.real, dump.others)) end
  write(',"threads":[')
  for i, thread in ipairs(dump.threads or {}) do write((i > 1 and "," or "") .. "\n " .. thread_json(thread)) end
  write("]")
  if dump.trouble then write(',"threads_unknown":' .. str(dump.trouble)) end
  local vms, wrong = json.list(dump.coroutines)
  local silence = dump.silence or wrong and limits.sentence("JSON_DEPTH", wrong)
  write(',"vms":')
  for _, piece in ipairs(vms or { "[]" }) do write(piece) end
  if silence then write(',"coroutines_unknown":' .. str(silence)) end
  write("}")
end

-- -- API -------------------------------------------------------------------

-- Writes a list of dumps. format: "txt" or "json".
function dumped.render(write, format, list)
  if format == "json" then
    write('{"format":"sysprof dump","version":1,"processes":[')
    for i, dump in ipairs(list) do
      write(i > 1 and ",\n" or "\n")
      write_json(write, dump)
    end
    return write("]}\n")
  end
  for i, dump in ipairs(list) do
    if i > 1 then write("\n") end
    write_text(write, dump)
  end
end

return dumped
