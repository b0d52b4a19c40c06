----------------------------------------------------------------------------
-- Checks and helpers for the tests in test/tools.
--
-- A check that fails prints the expected value and goes on. finish() ends the program
-- with status 0 if all checks held. Needs SYSPROF_SOURCE, the source folder, and LUAJIT,
-- the program that runs the reader.
----------------------------------------------------------------------------

local shell_status = require("shell_status")

local t = { source = os.getenv("SYSPROF_SOURCE") or ".",
	    luajit = os.getenv("LUAJIT") or "luajit" }
local checks, failures = 0, 0

local function show(v)
  return type(v) == "string" and ("%q"):format(v) or tostring(v)
end

function t.ok(condition, what)
  checks = checks + 1
  if condition then return end
  failures = failures + 1
  print("FAILED: " .. what)
end

function t.equal(got, expected, what)
  t.ok(got == expected, ("%s\n  expected %s\n  got      %s")
			:format(what, show(expected), show(got)))
end

-- Checks that s contains a plain text.
function t.contains(s, part, what)
  t.ok(type(s) == "string" and s:find(part, 1, true) ~= nil,
       ("%s\n  expected to find %s\n  in               %s")
       :format(what, show(part), show(s)))
end

function t.finish()
  print(("%d checks, %d failed"):format(checks, failures))
  os.exit(failures == 0 and 0 or 1)
end

-- -- Files -----------------------------------------------------------------

function t.read_file(path)
  local file = assert(io.open(path, "rb"))
  local s = file:read("*a")
  file:close()
  return s
end

-- The same, or "" if there is no such file.
function t.content(path)
  local file = io.open(path, "rb")
  local s = file and file:read("*a") or ""
  if file then file:close() end
  return s
end

function t.write_file(path, s)
  local file = assert(io.open(path, "wb"))
  assert(file:write(s))
  file:close()
end

-- Runs f(paths) with the names of temporary files that hold the texts of a list. Returns what f returns, up
-- to three values.
function t.with_files(list, f)
  local paths = {}
  for i, s in ipairs(list) do
    paths[i] = os.tmpname()
    t.write_file(paths[i], s)
  end
  local a, b, c = f(paths)
  for _, path in ipairs(paths) do os.remove(path) end
  return a, b, c
end

-- The same with one file.
function t.with_file(s, f)
  return t.with_files({ s }, function(paths) return f(paths[1]) end)
end

-- -- Waiting ---------------------------------------------------------------

local PATIENCE_SECONDS, NAP_MS = 60, 20
local clock, sleep

-- Returns the seconds of a clock that nobody sets.
function t.now()
  local ffi = require("ffi")
  if not clock then
    ffi.cdef 'int tools_test_clock(int, void *) __asm__("clock_gettime");'	-- No name that a test may declare, too.
    clock = ffi.C.tools_test_clock
  end
  local time = ffi.new("int64_t[2]")
  clock(1, time)
  return tonumber(time[0]) + tonumber(time[1]) / 1e9
end

function t.nap(ms)
  if not sleep then
    local ffi = require("ffi")
    ffi.cdef 'int tools_test_poll(void *, unsigned long, int) __asm__("poll");'
    sleep = ffi.C.tools_test_poll
  end
  sleep(nil, 0, ms)
end

local TRY_SECONDS = 0.05

-- Returns the duration of a recording in which a program that computes gets a quarter of these seconds, at least, as busy
-- as the machine is now.
function t.window(seconds)
  local real, cpu = t.now(), os.clock()
  repeat until os.clock() > cpu + TRY_SECONDS
  local slowness = (t.now() - real) / (os.clock() - cpu)
  return ("%.2fs"):format(seconds * math.max(slowness / 4, 1))
end

-- Waits until is_so() returns something that holds; returns it. Fails if it never does.
function t.wait_until(what, is_so)
  local limit = t.now() + PATIENCE_SECONDS
  repeat
    local result = is_so()
    if result then return result end
    t.nap(NAP_MS)
  until t.now() > limit
  t.ok(false, "never: " .. what)
end

-- -- Commands --------------------------------------------------------------

-- Runs a shell command; returns status, standard output, standard error.
function t.shell(command)
  local out, err = os.tmpname(), os.tmpname()
  local status = shell_status(("{ %s ; } >%s 2>%s"):format(command, out, err))
  local stdout, stderr = t.read_file(out), t.read_file(err)
  os.remove(out)
  os.remove(err)
  return status, stdout, stderr
end

-- Does a process run? One that has ended may wait for its parent.
function t.is_alive(pid)
  local stat = t.content(("/proc/%d/stat"):format(pid))
  return stat ~= "" and not stat:find(") Z ", 1, true)
end

-- The command line of the reader, without arguments.
t.parser = ("'%s' '%s/tools/luajit-parse-sysprof.lua' "):format(t.luajit, t.source)

function t.parse(arguments)
  return t.shell(t.parser .. arguments)
end

-- Returns messages without the warnings that are right on a busy machine: samples are lost where a handler does not run for
-- long, and ticks come late.
function t.without_load(err)
  for _, part in ipairs { "samples lost: %d+ %(%d+ the session was held, ", "[^\n]*no tick came" } do
    err = err:gsub("[^\n]*warning: " .. part .. "[^\n]*\n", "")
  end
  return err
end

-- Returns the output of a table without its column of errors, from the head on.
function t.without_errors(s)
  local before, name = s:match("^(.-)([^\n]-) +%+%-[^\n]*\n")
  if not before then return s end
  local first, last = #name, s:find("+-", #before + 1, true) - #before + 1
  return before .. s:sub(#before + 1):gsub("[^\n]+", function(line)
    return line:sub(1, first) .. line:sub(last + 1)
  end)
end

-- -- A profile of this process ---------------------------------------------

-- Computes until the running profile has this many samples.
function t.work_until(samples)
  local deadline = os.time() + 200
  repeat
    local s = 0
    for i = 1, 1e5 do s = s + i % 3 end
    t.ok(os.time() < deadline, "too few samples in time")
  until misc.sysprof.report().samples >= samples or os.time() >= deadline
end

-- -- Profiles of this process ----------------------------------------------

-- Checks that a list of clocks is refused with a message that has this part.
function t.refuses_clock(list, part)
  local ok, err, code = misc.sysprof.start({ mode = "C", clock = list, path = "none.bin" })
  t.equal(ok, nil, list)
  t.contains(err, part, list)
  t.ok(type(code) == "number" and code > 0, list .. ": errno")
  t.equal(io.open("none.bin"), nil, list .. ": no file")
end

-- -- Rendering in this process ---------------------------------------------

-- Renders a stream; returns the output and the profile, or nil and a message. base: a stream to
-- compare with, or nil.
function t.render(stream, format, options, base)
  local reader = require("sysprof.read.reader")
  local view = require("sysprof.show.view")
  local p, err = reader.parse_string(stream, { timeline = true })
  if not p then return nil, err end
  local v, out = assert(view.new(p, options)), {}
  if base then v:compare_with(view.new(assert(reader.parse_string(base)), options)) end
  require("sysprof.formats." .. (format or "folded")).render(v, function(s) out[#out + 1] = s end)
  return table.concat(out), p
end

return t
