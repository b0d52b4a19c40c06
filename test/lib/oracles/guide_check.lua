----------------------------------------------------------------------------
-- Check of a profile of a program that we did not write:
--
--   luajit guide_check.lua PROFILE SHARE STACK...
--
-- PROFILE is a file, or several with blanks between them, which this adds up. At
-- least SHARE of the samples, such as 0.995, must have complete stacks: from a
-- thread's first C frame on, with no frame broken or cut. Each STACK is a list of
-- texts with ";" between them. Some stack must have frames with these texts in this
-- order, root first, with or without others between them. A text "a|b" is a or b:
-- without debug symbols, functions that a library does not export have no names.
----------------------------------------------------------------------------

local path, share = arg[1], tonumber(arg[2])
local failed = false

local function fail(format, ...)
  failed = true
  print("FAIL: " .. path .. ": " .. format:format(...))
end

-- Frames that stand for missing ones.
local FAULTS = { "%[lua stack unknown: [^;]*%]", "%[host frames missing: [^;]*%]",
		 "%[lua frames left out%]", "%[host frames left out%]",
		 "%[no stack%]", "%[no lua stack%]", "%[no host stack%]" }
-- Outermost C functions of threads.
local ROOTS = { _start = true, __clone3 = true, clone3 = true, __clone = true,
		clone = true }

-- Does a stack begin at the root of its thread? A program without symbols has names only
-- for the functions that it calls. The C library then has no names at all.
local function is_root(stack)
  local root, called = stack:match("^([^;]*);?([^;]*)")
  return ROOTS[root] or called:find("^__libc_start_main") or root:find("^libc%.so%.6%+")
end

local function fault(stack)
  for _, pattern in ipairs(FAULTS) do
    local found = stack:match(pattern)
    if found then return found end
  end
  return not is_root(stack) and "begins with " .. stack:match("^[^;]*") or nil
end

local function has_text(frame, text)
  for one in text:gmatch("[^|]+") do
    if frame:find(one, 1, true) then return true end
  end
  return false
end

-- Does a stack have these texts, each in its own frame?
local function has(frames, texts)
  local i = 1
  for _, frame in ipairs(frames) do
    if texts[i] and has_text(frame, texts[i]) then i = i + 1 end
  end
  return texts[i] == nil
end

local function split(s)
  local list = {}
  for part in s:gmatch("[^;]+") do list[#list + 1] = part end
  return list
end

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local build = os.getenv("SYSPROF_BUILD")
local command = quote(build .. "/bin/luajit-parse-sysprof") .. " --format=folded"
for file in path:gmatch("%S+") do command = command .. " " .. quote(file) end
local pipe = assert(io.popen(command))
local stacks, total, faults, nfault = {}, 0, {}, 0
for line in pipe:lines() do
  local stack, n = line:match("^(.*) (%d+)$")
  n = tonumber(n)
  total = total + n
  stacks[#stacks + 1] = split(stack)
  local what = fault(stack)
  if what then
    nfault = nfault + n
    faults[what] = (faults[what] or 0) + n
  end
end
pipe:close()

-- Number of incomplete samples among n that chance allows, if their true share is at the
-- limit: the mean of this Poisson distribution, five standard deviations, and two.
local function faults_max(n)
  local mean = (1 - share) * n
  return mean + 5 * math.sqrt(mean) + 2
end

local complete = total > 0 and 1 - nfault / total or 0
print(("%s: %d samples, %d stacks, %.2f %% complete"):format(path, total, #stacks,
							     100 * complete))
for what, n in pairs(faults) do print(("%6d  %s"):format(n, what)) end
if total == 0 then
  fail("no samples")
elseif nfault > faults_max(total) then
  fail("%.2f %% of the stacks are complete, expected %.2f %%", 100 * complete,
       100 * share)
end
for i = 3, #arg do
  local texts, found = split(arg[i]), false
  for _, frames in ipairs(stacks) do found = found or has(frames, texts) end
  if not found then fail("no stack has '%s'", arg[i]) end
end
os.exit(failed and 1 or 0)
