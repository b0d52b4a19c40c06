-- Waits that block an event loop: which waits are idle, the table of waits, the longest one, and
-- what the options for them do in each format.

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local pprof = require("pprof_decode")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local wait_stacks = require("wait_stacks")
local F = B.F

local US, NS = G.SPF_UNIT_US, G.SPF_UNIT_NS
local WAITS = { { G.SPF_FIELD_COUNT, "waits" } }

-- A profile of waits only.
local function new_stream(tid)
  local b = B.new():context(tid or 7, 0):meta("clock", "offcpu"):meta("pid", "7")
  b:event(0, "switch-records", NS, 0, WAITS)
  return b, wait_stacks.new(b)
end

local function parse(stream)
  local p = assert(reader.parse_string(stream, { timeline = true, activity = true }))
  t.equal(p:problem_text(), nil, "problems")
  return p
end

local function copy_of(o, more)
  local c = {}
  for key, value in pairs(o) do c[key] = value end
  for key, value in pairs(more or {}) do c[key] = value end
  return c
end

local function render_profile(p, format, o)
  local out = {}
  require("sysprof.formats." .. format).render(assert(view.new(p, o)), function(s) out[#out + 1] = s end)
  return table.concat(out)
end

local function render(stream, format, o, base)
  return (assert(t.render(stream, format, copy_of(o or {}, { blocking = true }), base)))
end

-- -- Which waits are idle --------------------------------------------------

-- Whatever a view leaves out of stacks, it tells the kinds of waits by whole stacks.
local LEAVES_OUT = {
  {}, { no_host = true }, { no_lua = true }, { coroutine = true }, { no_coroutine_mark = true }, { traces = true },
  { depth = 1 }, { root = "main" }, { include = { "no such function" } }, { exclude = { "[waiting" } },
  { by = "function" }, { weight = "samples" },
}

local NAMES = { idle = "idle", blocking = "blocking", none = "without Lua", unknown = "unknown" }

-- Whether an item of a line is shown as it is, for all but waits.
local SHOWN = {
  { "^lua cut$", "%[lua frames left out%]" }, { "^lua broken$", "%[lua stack unknown: " },
  { "^lua outside$", "%[lua stack unknown: " }, { "^host cut$", "%[host frames left out%]" },
  { "^host broken$", "%[host frames missing: " }, { "^resume$", "[coroutine]" }, { "^gc$", "%[gc: " },
  { "^builtin (.*)$", "%1" }, { "^%l+ ([%w_]+)@?.*$", "%1" }, { "^@none$", "0x" }, { "^@(.*)$", "%1+0x" }, { "^([^@]+)@?.*$", "%1" },
}

-- Checks that a profile's stack is what its line says.
local function check_stack(p, line)
  local at, names = 0, {}
  view.new(p, {}):each(function(parts, n)
    for i = 1, n do names[i] = parts[i].text end
  end)
  for item in (line .. " > "):gmatch("(.-) > ") do
    if item ~= "enter" then
      at = at + 1
      for _, pair in ipairs(SHOWN) do
	if item:find(pair[1]) then
	  local name = item:gsub(pair[1], pair[2]):gsub("%%", "")
	  if item:sub(1, 1) ~= "[" then t.contains(names[at], name, line .. ": joined") end
	  break
	end
      end
    end
  end
  t.equal(#names, at, line .. ": number of frames")
end

-- Checks the kind of one wait. Returns the profile.
local function check(expected, line, patterns)
  local b, stacks = new_stream()
  stacks:wait(line, 5)
  local p, what = parse(b:finish()), line .. (patterns and ", loops: " .. table.concat(patterns, ", ") or "")
  check_stack(p, line)
  for _, o in ipairs(LEAVES_OUT) do
    local v = assert(view.new(p, copy_of(o, { blocking = true, loops = patterns })))
    t.equal(v.kinds[1], NAMES[expected], ("%s (%s)"):format(what, tostring(next(o))))
  end
  local shown = render_profile(p, "folded", { blocking = true, loops = patterns })
  t.equal(shown ~= "", expected == "blocking", what .. ": shown")
  local head = render_profile(p, "top", { blocking = true, loops = patterns })
  for _, name in pairs(NAMES) do
    t.contains(head, ("\nwaits: %-11s %s"):format(name, name == NAMES[expected] and "0.005 s, 1 wait" or "0.000 s, 0 waits"),
	       what .. ": head")
  end
  return p
end

-- Checks a list of { expected, line, pattern... }.
local function check_all(cases)
  for _, case in ipairs(cases) do
    local patterns = {}
    for i = 3, #case do patterns[i - 2] = case[i] end
    check(case[1], case[2], #patterns > 0 and patterns or nil)
  end
end

-- Known functions: in the program or a library, under the host or under Lua.
for name in ([[ngx_epoll_process_events ngx_process_events_and_timers uv__io_poll uv_run ev_run epoll_poll event_base_loop
  epoll_dispatch g_main_loop_run g_main_context_iteration aeProcessEvents]]):gmatch("%S+") do
  check_all {
    { "idle", ("main > %s > epoll_wait@libc.so.6 > [epoll_wait]"):format(name) },
    { "idle", ("main > lua f > %s > epoll_wait@libc.so.6 > [epoll_wait]"):format(name) },
    { "idle", ("main > lua f > called run@luv.so > %s@libloop.so.2 > [epoll_wait]"):format(name) },
    { "idle", ("main > lua f > called %s@luv.so > [epoll_wait]"):format(name) },
    { "idle", ("main > lua f > cfunc %s > [epoll_wait]"):format(name) },
    { "idle", ("main > lua f > %s.isra.0 > poll@libc.so.6 > [poll]"):format(name) },
    { "idle", ("main > lua f > %s.constprop.0.isra.1 > poll@libc.so.6 > [poll]"):format(name) },
    { "blocking", ("main > %s > callback > lua f > read@libc.so.6 > [read]"):format(name) },
    { "blocking", ("main > %s > callback > lua f > epoll_wait@libc.so.6 > [epoll_wait]"):format(name) },
    { "blocking", ("main > lua f > x%s > epoll_wait@libc.so.6 > [epoll_wait]"):format(name) },
    { "blocking", ("main > lua f > %s2 > epoll_wait@libc.so.6 > [epoll_wait]"):format(name) },
    { "blocking", ("main > lua f > builtin %s > [epoll_wait]"):format(name) },
    { "blocking", ("main > lua %s > [epoll_wait]"):format(name) },
  }
end

-- System calls that wait for events, and others.
for _, call in ipairs { "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6", "io_getevents",
			"io_uring_enter", "restart_syscall" } do
  check("idle", ("main > lua f > uv_run@libuv.so.1 > x@libc.so.6 > [%s]"):format(call))
end
for _, call in ipairs { "read", "pread64", "nanosleep", "wait4", "futex", "epoll_wait_old", "5000", "fault", "odd fault", "unknown" } do
  check_all {
    { "blocking", ("main > lua f > uv_run@libuv.so.1 > x@libc.so.6 > [%s]"):format(call) },
    { "none", ("main > uv_run@libuv.so.1 > x@libc.so.6 > [%s]"):format(call) },
  }
end

-- What stands between a loop and its wait: parts of the C library and of the loop's own library, and
-- nameless parts of its own program. %s: the function. Here the loop is in a library, then in the program.
local UV, NGX = "main > lua f > uv_run@libuv.so.1 > %s > [epoll_wait]", "main > lua f > ngx_epoll_process_events > %s > [epoll_wait]"
for _, case in ipairs {
  { UV, "idle", "any@libc.so.6", "any@libc-2.31.so", "any@libpthread.so.0", "any@libpthread-2.31.so",
    "any@ld-musl-x86_64.so.1", "any@libc.musl-x86_64.so.1", "@libc.so.6", "any@libuv.so.1", "@libuv.so.1",
    "epoll_wait", "__epoll_wait", "epoll_pwait@libother.so", "__poll", "poll@none", "select.part.0", "__libc_poll@libc.so.6",
    "__syscall_cancel", "__syscall_cp", "__internal_syscall_cancel", "__syscall_cancel_arch@none", "any@libuv.so.1 > any@libc.so.6",
    "any@libc.so.6 > epoll_pwait > __syscall_cancel" },
  { UV, "blocking", "any", "@program", "any@libother.so.1", "@libother.so.1", "any@libuv.so.10", "any@libcurl.so.4",
    "any@libcx.so.6", "any@libpthreadx.so", "any@xlibc.so.6", "any@none", "@none", "my_epoll_wait", "epoll_waits", "read",
    "any@libc.so.6 > any", "any > any@libc.so.6", "any@ld-linux-x86-64.so.2", "any@my-ld-musl-x.so", "builtin pcall",
    "cfunc any@libuv.so.1", "lua g", "compiled g" },
  { NGX, "idle", "@program", "@program > @program", "epoll_wait@libc.so.6", "__epoll_wait", "@program > poll > __syscall_cancel" },
  -- The functions of a program that have names may be callbacks.
  { NGX, "blocking", "ngx_handler", "ngx_handler > poll@libc.so.6", "@libuv.so.1", "any@none", "any.so", "@none" },
  -- Some loops are in libraries whose files end in other ways.
  { "main > lua f > uv_run@luv.so > %s > [epoll_wait]", "idle", "any@luv.so" },
  { "main > lua f > uv_run@libuv-1.2.so > %s > [epoll_wait]", "idle", "any@libuv-1.2.so" },
  { "main > lua f > uv_run@libuv.so.1.0.0 > %s > [epoll_wait]", "idle", "any@libuv.so.1.0.0" },
  { "main > lua f > uv_run@app.software > %s > [epoll_wait]", "blocking", "any@app.software" },
  { "main > lua f > uv_run@none > %s > [epoll_wait]", "blocking", "any@none", "@none" },
  { "main > lua f > uv_run@none > %s > [epoll_wait]", "idle", "x@libc.so.6", "poll@none" },
} do
  for i = 3, #case do check(case[2], case[1]:format(case[i])) end
end

-- A loop does not call many functions to wait.
check("idle", UV:format(("any@libc.so.6 > "):rep(15) .. "poll"))
check("blocking", UV:format(("any@libc.so.6 > "):rep(16) .. "poll"))
check("idle", UV:format(("any@libc.so.6 > "):rep(30) .. "poll"), { "uv_run" })

-- Loops beside loops, callbacks, coroutines, hosts, compiled code.
check_all {
  { "none", "main > read@libc.so.6 > [read]" },
  { "none", "[read]" }, { "none", "[fault]" }, { "none", "main > [poll]" },
  { "idle", "uv_run > [poll]" },
  { "idle", "main > lua f > uv_run > [poll]" },
  { "blocking", "main > lua f > [poll]" }, { "blocking", "main > lua f > [fault]" }, { "blocking", "main > lua f > [unknown]" },
  { "blocking", "main > builtin pcall > [read]" }, { "blocking", "main > cfunc any > [read]" },
  { "none", "main > called any > read@libc.so.6 > [read]" },
  { "blocking", "main > lua f > builtin io.read > read@libc.so.6 > [read]" },
  { "blocking", "main > lua f > gc > [fault]" },
  -- A builtin or a C function that Lua called runs the loop.
  { "idle", "main > builtin pcall > called luv_run@luv.so > uv_run@luv.so > uv__io_poll@luv.so > epoll_pwait@libc.so.6 > [epoll_pwait]" },
  -- Coroutines.
  { "idle", "main > lua f > builtin coroutine.resume > resume > lua g > called run@luv.so > uv_run@libuv.so.1 > [poll]" },
  { "idle", "main > lua f > builtin coroutine.wrap > resume > called uv_run > [poll]" },
  { "blocking", "main > lua f > builtin coroutine.resume > resume > lua g > called nap > nanosleep@libc.so.6 > [nanosleep]" },
  { "blocking", "main > lua f > uv_run > callback > lua g > builtin coroutine.resume > resume > lua h > read > [read]" },
  { "blocking", "main > lua f > uv_run > callback > lua g > builtin coroutine.resume > resume > lua h > uv_run > [poll]" },
  { "blocking", "main > uv_run > callback > lua g > builtin coroutine.resume > resume > lua h > [poll]" },
  -- A loop in the callback of another loop, whether Lua called that one or not.
  { "blocking", "main > uv_run > callback > lua f > uv_run > epoll_wait@libc.so.6 > [epoll_wait]" },
  { "blocking", "main > lua f > uv_run > callback > lua g > uv_run > epoll_wait@libc.so.6 > [epoll_wait]" },
  { "blocking", "main > uv_run.isra.0 > lua f > g_main_loop_run > poll@libc.so.6 > [poll]" },
  { "blocking", "lua f > cfunc uv_run > enter > lua g > ev_run > [poll]" },
  { "blocking", "uv_run > lua f > uv_run > [poll]" },
  { "blocking", "main > ev_run > callback > lua f > lua g > builtin pcall > enter > lua h > cfunc uv_run > [poll]" },
  -- Without Lua between, no code of Lua waits.
  { "idle", "main > g_main_loop_run@libglib.so > g_main_context_iteration@libglib.so > poll@libc.so.6 > [poll]" },
  { "idle", "main > uv_run > callback > uv_run > [poll]" },
  { "idle", "main > uv_run > callback > cfunc uv_run > [poll]" },
  -- A loop is at work if it has called back something.
  { "none", "main > uv_run > callback > poll@libc.so.6 > [poll]" },
  { "none", "main > uv_run > callback > read@libc.so.6 > [read]" },
  { "none", "main > uv_run@libuv.so.1 > callback > poll@libuv.so.1 > [poll]" },
  { "idle", "main > uv_run@libuv.so.1 > callback > uv__io_poll@libuv.so.1 > poll@libc.so.6 > [poll]" },
  -- Hosts that run the loop for a call from Lua.
  { "idle", "main > loop_poll_events > uv_run@libuv.so.1 > uv__io_poll@libuv.so.1 > epoll_pwait@libc.so.6 > [epoll_pwait]" },
  { "blocking", "main > lua f > called wait > loop_poll_events > uv_run@libuv.so.1 > uv__io_poll@libuv.so.1 > epoll_pwait@libc.so.6 > [epoll_pwait]" },
  { "blocking", "main > lua f > called wait > loop_poll_events.isra.0 > uv_run@libuv.so.1 > [epoll_pwait]" },
  { "blocking", "main > lua f > cfunc loop_poll_events > uv_run@libuv.so.1 > [epoll_pwait]" },
  { "blocking", "main > loop_poll_events > uv_run > callback > lua f > uv_run > [poll]" },
  { "blocking", "main > loop_poll_events > callback > lua f > uv_run > [poll]" },
  { "none", "main > loop_poll_events > epoll_pwait@libc.so.6 > [epoll_pwait]" },
  { "blocking", "main > lua f > loop_poll_events > epoll_pwait@libc.so.6 > [epoll_pwait]" },
  { "blocking", "main > loop_poll_events > uv_run > callback > lua f > read > [read]" },
  { "idle", "main > lua loop_poll_events > uv_run > [poll]" },
  { "idle", "main > lua f > builtin loop_poll_events > called run > uv_run > [poll]" },
  { "idle", "main > builtin pcall > loop_poll_events > uv_run > [poll]" },
  -- The FFI calls a loop: from the interpreter by a builtin, from compiled code without one.
  { "idle", "main > lua f > builtin cdata.__call > uv_run@libuv.so.1 > [epoll_wait]" },
  { "idle", "main > compiled f > uv_run@libuv.so.1 > epoll_wait@libc.so.6 > [epoll_wait]" },
  { "blocking", "main > compiled f > epoll_wait@libc.so.6 > [epoll_wait]" },
  { "blocking", "main > uv_run@libuv.so.1 > callback > compiled f > read@libc.so.6 > [read]" },
  { "blocking", "main > uv_run > callback > compiled f > uv_run > poll@libc.so.6 > [poll]" },
  { "blocking", "main > uv_run > callback > lua f > compiled g > poll@libc.so.6 > [poll]" },
  -- A program that holds the C library.
  { "idle", "main > lua f > uv_run > uv__io_poll > epoll_pwait > __syscall_cancel > __internal_syscall_cancel > __syscall_cancel_arch > [epoll_pwait]" },
  { "idle", "main > lua f > ngx_epoll_process_events > epoll_wait > [epoll_wait]" },
  { "blocking", "main > lua f > ngx_epoll_process_events > ngx_handler > epoll_wait > __syscall_cancel > [epoll_wait]" },
  -- Waits that are unknown, or none.
  { "unknown", "[short]" }, { "unknown", "[late]" }, { "unknown", "[many]" }, { "unknown", "main > lua f > [late]" },
  { "unknown", "main > uv_run > [late]" }, { "unknown", "main > lua f > [short]" },
}

-- What is no wait has no kind.
for _, what in ipairs { "ready", "busy", "later", "no tick" } do
  local b, stacks = new_stream()
  stacks:wait("main > lua f > [" .. what .. "]", 5)
  local v = assert(view.new(parse(b:finish()), { blocking = true }))
  t.equal(v.kinds[1], nil, what)
end
t.equal(assert(view.new(parse(new_stream():stack(1, { F.host(1) }):sample(0, 1, 1, nil, 5, 0, { 1 }):finish()),
			{ blocking = true })).kinds[1], nil, "no leaf")

-- Frames that are missing. A loop could hide among them, unless a builtin has called them.
check_all {
  { "unknown", "main > host broken > [poll]" }, { "unknown", "host broken > [poll]" },
  { "unknown", "main > lua f > host broken > [poll]" }, { "unknown", "main > lua f > host cut > poll@libc.so.6 > [poll]" },
  { "unknown", "main > lua f > called run > host broken > poll@libc.so.6 > [poll]" },
  { "unknown", "main > lua f > uv_run > host broken > poll@libc.so.6 > [poll]" },
  { "unknown", "main > lua f > uv_run > host cut > [poll]" },
  { "unknown", "main > lua f > host broken > callback > poll@libc.so.6 > [poll]" },
  { "unknown", "main > lua f > cfunc run > host broken > [poll]" },
  { "unknown", "main > lua f > builtin cdata.__call > host broken > poll@libc.so.6 > [poll]" },
  { "blocking", "main > lua f > builtin io.read > host broken > poll@libc.so.6 > [poll]" },
  { "blocking", "main > lua f > builtin io.read > host cut > [poll]" },
  { "unknown", "main > lua f > builtin pcall > enter > called run > host cut > [poll]" },
  -- Only a loop of the user waits for something else.
  { "blocking", "main > lua f > host broken > [fault]" }, { "blocking", "main > lua f > host broken > read@libc.so.6 > [read]" },
  { "unknown", "main > lua f > host broken > read@libc.so.6 > [read]", "my_loop" },
  { "none", "main > host broken > read@libc.so.6 > [read]" },
  { "unknown", "main > host broken > read@libc.so.6 > [read]", "my_loop" },
  -- What is missing below the loop does not matter.
  { "idle", "main > host broken > uv_run > [poll]" }, { "idle", "main > lua f > host broken > uv_run > poll@libc.so.6 > [poll]" },
  { "idle", "main > lua f > host cut > uv_run > [poll]" }, { "idle", "main > lua broken > uv_run > [poll]" },
  -- What is missing below the Lua function does not, either.
  { "blocking", "main > host broken > lua f > poll@libc.so.6 > [poll]" },
  { "blocking", "main > lua broken > callback > lua f > poll@libc.so.6 > [poll]" },
  { "blocking", "main > lua cut > lua f > poll@libc.so.6 > [poll]" },
  -- Lua functions are missing.
  { "unknown", "main > lua broken > poll@libc.so.6 > [poll]" }, { "unknown", "main > lua cut > poll@libc.so.6 > [poll]" },
  { "unknown", "main > uv_run > callback > lua broken > poll@libc.so.6 > [poll]" },
  { "unknown", "main > uv_run > lua broken > poll@libc.so.6 > [poll]" },
  { "unknown", "main > lua f > builtin pcall > lua cut > poll@libc.so.6 > [poll]" },
  { "unknown", "main > lua f > lua cut > builtin pcall > lua cut > poll@libc.so.6 > [poll]" },
  { "blocking", "main > lua f > builtin pcall > lua cut > poll@libc.so.6 > [read]" },
  { "unknown", "main > lua broken > read@libc.so.6 > [read]" }, { "unknown", "lua cut > [fault]" }, { "unknown", "lua outside > [read]" },
  { "blocking", "main > lua broken > builtin io.read > read@libc.so.6 > [read]" },
  -- A name that begins with a dot is one.
  { "blocking", "main > lua f > ngx_epoll_process_events > .handler > poll@libc.so.6 > [poll]" },
  -- The loop is there. That another one has called back is, too.
  { "blocking", "main > uv_run > callback > lua f > host broken > uv_run > [poll]" },
  { "unknown", "main > my_loop > callback > lua f > host broken > read@libc.so.6 > [read]", "my_loop" },
  -- A coroutine hides nothing.
  { "blocking", "main > lua f > called auxresume > resume > cfunc g > [poll]" },
  { "blocking", "main > lua f > builtin coroutine.resume > resume > called poll@libc.so.6 > [poll]" },
  { "blocking", "main > lua f > builtin coroutine.resume > resume > builtin io.read > host broken > [poll]" },
}

-- -- Loops that the user names ---------------------------------------------

check_all {
  -- C functions.
  { "blocking", "main > lua f > called my_loop > read@libc.so.6 > [read]" },
  { "idle", "main > lua f > called my_loop > read@libc.so.6 > [read]", "my_loop" },
  { "idle", "main > lua f > called my_loop > read@libc.so.6 > [read]", "^my_*p$" },
  { "blocking", "main > lua f > called my_loop > read@libc.so.6 > [read]", "^my$" },
  { "idle", "main > lua f > called my_loop > read@libc.so.6 > [read]", "^my$", "loop" },
  { "idle", "main > lua f > cfunc my_loop > [unknown]", "my_loop" },
  { "idle", "main > lua f > my_loop > callback > other > [fault]", "my_loop" },
  { "idle", "main > lua f > my_loop > host broken > [read]", "my_loop" },
  { "idle", "main > my_loop > callback > read > [read]", "my_loop" },
  { "idle", "main > my_loop.isra.0 > [read]", "my_loop" },
  { "blocking", "main > my_loop > callback > lua f > read > [read]", "my_loop" },
  { "blocking", "main > my_loop > callback > lua f > called my_loop > read > [read]", "my_loop" },
  { "blocking", "main > uv_run > callback > lua f > called my_loop > read > [read]", "my_loop" },
  { "blocking", "main > my_loop > callback > lua f > uv_run > poll@libc.so.6 > [poll]", "my_loop" },
  { "blocking", "main > lua f > loop_poll_events > my_loop > read > [read]", "my_loop" },
  { "blocking", "main > lua f > loop_poll_events > read > [read]", "loop_poll_events" },
  { "idle", "main > loop_poll_events > read > [read]", "loop_poll_events" },
  { "idle", "main > lua f > my_loop > loop_poll_events > read > [read]", "my_loop" },
  { "idle", "main > lua f > @libmine.so > read@libc.so.6 > [read]", "libmine.so+" },
  { "idle", "main > lua f > uv_run > callback > read@libc.so.6 > [read]", "uv_run" },
  -- Builtins.
  { "idle", "main > lua f > builtin mine.wait > read@libc.so.6 > [read]", "^mine.wait$" },
  { "blocking", "main > lua f > builtin mine.wait > enter > lua g > read@libc.so.6 > [read]", "^mine.wait$" },
  { "blocking", "main > lua f > builtin mine.wait > enter > lua g > uv_run > [poll]", "^mine.wait$" },
  { "blocking", "main > lua f > builtin mine.wait > enter > lua g > builtin mine.wait > [poll]", "^mine.wait$" },
  { "idle", "main > lua f > builtin cdata.__call > any@libmine.so > [read]", "cdata" },
  -- Lua functions: one or several, which call each other.
  { "idle", "main > lua loop > [read]", "loop (a.lua" }, { "idle", "main > compiled loop > read@libc.so.6 > [read]", "loop (" },
  { "idle", "main > lua f > lua loop > builtin socket.select > poll@libc.so.6 > [poll]", "loop (" },
  { "idle", "main > lua f > lua loop > lua loop2 > called select > poll@libc.so.6 > [poll]", "loop" },
  { "idle", "main > lua loop > lua loop > lua loop > [poll]", "loop" },
  { "idle", "lua loop > lua loop > uv_run > [poll]", "loop" },
  { "idle", "main > lua loop > uv_run@libuv.so.1 > poll@libc.so.6 > [poll]", "loop" },
  { "blocking", "main > lua loop > lua f > [read]", "loop" },
  { "blocking", "main > lua loop > lua f > lua loop > [read]", "loop" },
  { "blocking", "main > lua loop > lua f > uv_run > [poll]", "loop" },
  { "blocking", "main > lua loop > builtin coroutine.resume > resume > lua f > lua loop > lua loop > [read]", "loop" },
  { "blocking", "main > uv_run > callback > lua loop > [read]", "loop" },
  { "blocking", "main > uv_run > lua loop > lua loop2 > [read]", "loop" }, { "blocking", "uv_run > lua loop > [read]", "loop" },
  { "idle", "main > lua f > builtin loop > enter > lua loop > [read]", "loop" },
  { "idle", "main > lua f > host broken > enter > lua loop > [read]", "loop" },
  { "idle", "main > loop_poll_events > lua loop > [read]", "loop" },
  { "blocking", "main > loop_poll_events > lua loop > [read]", "loop (" },
  -- Neither markers nor waits nor work of the VM are functions.
  { "unknown", "main > lua f > host broken > poll@libc.so.6 > [poll]", "host" },
  { "unknown", "main > lua f > host broken > poll@libc.so.6 > [poll]", "[" },
  { "blocking", "main > lua f > poll@libc.so.6 > [poll]", "waiting" }, { "blocking", "main > lua f > gc > [fault]", "gc" },
  { "blocking", "main > lua f > builtin resume > resume > cfunc g > [read]", "[coroutine]" },
  { "unknown", "main > lua broken > poll@libc.so.6 > [poll]", "lua stack" },
  -- Lua functions that are missing may have been called back.
  { "unknown", "main > my_loop > callback > lua broken > read@libc.so.6 > [read]", "my_loop" },
  { "unknown", "main > lua f > my_loop > callback > lua cut > read@libc.so.6 > [read]", "my_loop" },
}

-- -- The table -------------------------------------------------------------

local READ, NAP = "main > lua f > called fetch > read@libc.so.6 > [read]", "main > uv_run > callback > lua g > called nap > [nanosleep]"
local IDLE, LUA_IDLE = "main > uv_run@libuv.so.1 > [poll]", "main > lua f > called run > ev_run > [epoll_wait]"

-- Returns the lines of the head about waits and what is shown, and the table.
local function table_of(out)
  local head, rows = out:match("^(.-)\n\n(.*)$")
  return (head .. "\n"):match("\n(waits: .*)") or "", rows
end

local function table_stream()
  local b, stacks = new_stream()
  stacks:wait(READ, 5):wait(READ, 7):wait("main > lua f > called fetch > [fault]", 1)
  stacks:wait("main > lua f > called fetch > read@libc.so.6 > [read]", 2, 1, 0, G.SPF_VMST_GC)
  stacks:wait(NAP, 3):wait(NAP, 4):wait(IDLE, 1000):wait(IDLE, 1000, 0):wait(LUA_IDLE, 20):wait("[short]", 30, 12)
  stacks:wait("main > [read]", 40):wait("[late]", 8):wait("[ready]", 500, 0):wait("main > builtin pcall > [futex]", 1.5)
  return b:finish()
end

local stream = table_stream()
local LINES = [[
waits: idle        2.020 s, 2 waits in ev_run, uv_run
waits: blocking    0.024 s, 7 waits
waits: without Lua 0.040 s, 1 wait
waits: unknown     0.038 s, 13 waits
]]
local function head_of(by) return "    total ms  total%      waits   longest ms  " .. by .. "\n" end
local F_ROW = "      15.000    63.8          4        7.000  f (a.lua:11)  fetch  [waiting: read]  (and 1 more kind of wait)\n"
local G_ROW = "       7.000    29.8          2        4.000  g (a.lua:21)  nap  [waiting: nanosleep]\n"
local PCALL_ROW = "       1.500     6.4          1        1.500  pcall  [waiting: futex]\n"

local head, rows = table_of(render(stream, "top", { lines = true }))
t.equal(head, LINES .. "shown              23.500 ms, 7 samples\n", "head")
t.equal(rows, head_of("line") .. F_ROW .. G_ROW .. PCALL_ROW, "table of lines")
head, rows = table_of(render(stream, "top", {}))
t.equal(head, LINES .. "shown              23.500 ms, 7 samples\n", "head, functions")
local FUNCTIONS = (F_ROW .. G_ROW .. PCALL_ROW):gsub(":([12])1%)", ":%10)")
t.equal(rows, head_of("function") .. FUNCTIONS, "table of functions")
for _, by in ipairs { "line", "function" } do
  t.equal(select(2, table_of(render(stream, "top", { by = by }))), head_of(by) .. FUNCTIONS, "--by=" .. by)
end
t.equal(select(2, table_of(render(stream, "top", { lines = true, limit = 1 }))),
	head_of("line") .. F_ROW .. "         ... 2 more lines (--limit=0 shows all)\n", "limit")
t.equal(select(2, table_of(render(stream, "top", { lines = true, weight = "waits" }))), [[
       total  total%      waits   longest ms  line
           4    57.1          4        7.000  f (a.lua:11)  fetch  [waiting: read]  (and 1 more kind of wait)
           2    28.6          2        4.000  g (a.lua:21)  nap  [waiting: nanosleep]
           1    14.3          1        1.500  pcall  [waiting: futex]
]], "weights are waits")
t.equal(table_of(render(stream, "top", { lines = true, weight = "waits" })), LINES .. "shown              7 waits, 7 samples\n",
	"head, weights are waits")
t.equal(select(2, table_of(render(stream, "top", { lines = true, weight = "samples" }))):gsub("[^\n]*\n", "", 1), [[
           4    57.1          4        7.000  f (a.lua:11)  fetch  [waiting: read]  (and 1 more kind of wait)
           2    28.6          2        4.000  g (a.lua:21)  nap  [waiting: nanosleep]
           1    14.3          1        1.500  pcall  [waiting: futex]
]], "weights are samples")

-- A loop of the user; idle waits are in the head only.
head, rows = table_of(render(stream, "top", { lines = true, loops = { "^nap$" } }))
t.equal(head:match("[^\n]*\n[^\n]*\n"), "waits: idle        2.020 s, 2 waits in ev_run, uv_run\nwaits: blocking    0.024 s, 7 waits\n",
	"a loop that another one has called back")
head, rows = table_of(render(stream, "top", { lines = true, loops = { "^fetch$", "none" } }))
t.equal(head:match("[^\n]*\n[^\n]*\n"), "waits: idle        2.035 s, 6 waits in ev_run, fetch, uv_run\n" ..
	"waits: blocking    0.009 s, 3 waits\n", "a loop of the user: head")
t.equal(rows, head_of("line") .. "       7.000    82.4          2        4.000  g (a.lua:21)  nap  [waiting: nanosleep]\n" ..
	"       1.500    17.6          1        1.500  pcall  [waiting: futex]\n", "a loop of the user")

-- Nothing is cut off a stack's kind and wait by what a view leaves out.
t.equal(select(2, table_of(render(stream, "top", { lines = true, depth = 2, include = { "f (" } }))),
	head_of("line") .. "      15.000   100.0          4        7.000  f (a.lua:11)  [waiting: read]  (and 1 more kind of wait)\n", "--depth")
t.equal(select(2, table_of(render(stream, "top", { no_lua = true, include = { "fetch" } }))),
	head_of("function") .. "      15.000   100.0          4        7.000  main  fetch  [waiting: read]  (and 1 more kind of wait)\n", "--no-lua")
t.equal(select(2, table_of(render(stream, "top", { no_host = true, include = { "g (" } }))),
	head_of("function") .. "       7.000   100.0          2        4.000  g (a.lua:20)  nap  [waiting: nanosleep]\n", "--no-host")
t.equal(select(2, table_of(render(stream, "top", { root = "nap" }))),
	head_of("function") .. "       7.000   100.0          2        4.000  nap  [waiting: nanosleep]\n", "--root")
t.equal(select(2, table_of(render(stream, "top", { states = { G.SPF_VMST_GC } }))),
	head_of("function") .. "       2.000   100.0          1        2.000  f (a.lua:10)  fetch  [waiting: read]\n", "--state")

-- Of two texts beside a row with the same time, the first one by letters stands there.
local b, stacks = new_stream()
stacks:wait("main > lua f > called y > [read]", 5):wait("main > lua f > called x > [read]", 5):wait("main > lua f > [read]", 4)
t.equal(select(2, table_of(render(b:finish(), "top", {}))),
	head_of("function") .. "      14.000   100.0          3        5.000  f (a.lua:10)  x  [waiting: read]  (and 2 more kinds of wait)\n", "ties")
b, stacks = new_stream()
stacks:wait("main > lua y > [read]", 5):wait("main > lua x > [fault]", 5)
t.equal(select(2, table_of(render(b:finish(), "top", {}))), head_of("function") ..
	"       5.000    50.0          1        5.000  x (a.lua:20)  [page fault]\n" ..
	"       5.000    50.0          1        5.000  y (a.lua:10)  [waiting: read]\n", "rows with the same time")

-- Compiled code of a line is in its row.
b, stacks = new_stream()
stacks:wait("main > lua f > called x > [read]", 5):wait("main > compiled f > x > [read]", 5)
t.equal(select(2, table_of(render(b:finish(), "top", {}))),
	head_of("function") .. "      10.000   100.0          2        5.000  f (a.lua:10)  x  [waiting: read]\n", "compiled code")

-- Nothing blocks.
b, stacks = new_stream()
stacks:wait("main > read@libc.so.6 > [read]", 5)
head, rows = table_of(render(b:finish(), "top", {}))
t.equal(head:match("[^\n]*\n"), "waits: idle        0.000 s, 0 waits; no known event loop waited, --loop=NAME adds one\n", "no loop")
t.equal(head:match("shown.*"), "shown              0.000 ms, 0 samples\n", "no wait is shown")
t.equal(rows, head_of("function"), "no rows")

-- -- System calls ----------------------------------------------------------

head, rows = table_of((t.render(stream, "top", { by = "syscall" })))
t.equal(head, "", "--by=syscall: nothing about loops")
t.equal(rows, [[
    total ms  total%      waits   longest ms  syscall
    2000.000    76.3          1     2000.000  [waiting: poll]
     500.000    19.1          0               [runnable]
      54.000     2.1          4       40.000  [waiting: read]
      30.000     1.1         12               [short waits]
      20.000     0.8          1       20.000  [waiting: epoll_wait]
       8.000     0.3          1        8.000  [stack unknown: seen too late]
       7.000     0.3          2        4.000  [waiting: nanosleep]
       1.500     0.1          1        1.500  [waiting: futex]
       1.000     0.0          1        1.000  [page fault]
]], "--by=syscall")
t.equal(select(2, table_of(render(stream, "top", { by = "syscall" }))), [[
    total ms  total%      waits   longest ms  syscall
      14.000    59.6          3        7.000  [waiting: read]
       7.000    29.8          2        4.000  [waiting: nanosleep]
       1.500     6.4          1        1.500  [waiting: futex]
       1.000     4.3          1        1.000  [page fault]
]], "--blocking --by=syscall")
t.contains(render(stream, "top", { by = "syscall", limit = 2 }), "\n         ... 2 more syscalls (--limit=0 shows all)\n", "--limit")
for _, o in ipairs { { depth = 1 }, { no_lua = true }, { no_host = true }, { depth = 2, root = "main" } } do
  o.by = "syscall"
  t.contains(render(stream, "top", o), "\n      14.000    59.6          3        7.000  [waiting: read]\n", "--by=syscall, parts of stacks")
end

-- Other rows of a table are those of a filter.
rows = select(2, table_of(render(stream, "top", { by = "module" })))
t.contains(rows, "      23.500   100.0       23.500   100.0  [waiting]\n", "--by=module")
t.contains(rows, "       0.000     0.0       22.000    93.6  a.lua\n", "--by=module: Lua")
rows = select(2, table_of(render(stream, "top", { by = "vmstate" })))
t.equal(rows, "     self ms   self%     total ms  total%  vmstate\n" ..
	"      21.500    91.5       21.500    91.5  LFUNC\n       2.000     8.5        2.000     8.5  GC\n", "--by=vmstate")
rows = select(2, table_of(render(stream, "top", { by = "thread" })))
t.equal(rows, "     self ms   self%     total ms  total%  thread\n      23.500   100.0       23.500   100.0  7\n", "--by=thread")
t.equal(view.new(parse(stream), { blocking = true, by = "age" }), nil, "--by=age")
t.equal(view.new(parse(stream), { blocking = true, by = "type" }), nil, "--by=type")

-- -- The longest wait ------------------------------------------------------

local SLOW, OTHER = "main > lua f > called fetch > [read]", "main > lua g > called fetch > [read]"

-- Returns a map from the names of rows to their longest waits, "-" if unknown.
local function longest_of(out)
  local list = {}
  for line in select(2, table_of(out)):gmatch("[^\n]+") do
    local waits, longest, name = line:match("^ +[%d.]+ +[%d.]+ +(%d+) (.............) (%S+)")
    if waits then list[name] = waits .. " " .. (longest:match("[%d.]+") or "-") end
  end
  return list
end

local function check_longest(stream_or_profile, o, expected, what)
  o = copy_of(o, { blocking = true })
  local p = type(stream_or_profile) == "string" and parse(stream_or_profile) or stream_or_profile
  local got = longest_of(render_profile(p, "top", o))
  for name, value in pairs(expected) do t.equal(got[name], value, what .. ": " .. name) end
end

-- Parts of one wait add up; a new wait begins anew, also if another one was between.
b, stacks = new_stream()
stacks:wait(SLOW, 1000):wait(SLOW, 1000, 0):wait(SLOW, 500, 0):wait(SLOW, 600):wait(OTHER, 10):wait(SLOW, 700)
stacks:wait(OTHER, 1000):wait(OTHER, 1000, 0):wait(OTHER, 1, 0)
check_longest(b:finish(), {}, { f = "3 2500.000", g = "2 2001.000" }, "parts")
-- The first part is a later part of a wait that is not known. A part behind another wait is another wait.
b, stacks = new_stream()
stacks:wait(SLOW, 1000, 0):wait(SLOW, 300, 0):wait(SLOW, 5):wait(OTHER, 1):wait(SLOW, 400, 0):wait(SLOW, 200, 0)
check_longest(b:finish(), {}, { f = "1 1300.000", g = "1 1.000" }, "no first part")
b, stacks = new_stream()
stacks:wait(OTHER, 1000):wait(SLOW, 900, 0)
check_longest(b:finish(), {}, { f = "0 900.000", g = "1 1000.000" }, "a part behind another wait")
-- Sums of short waits and of ready time stand between parts, and waits that do not block.
b, stacks = new_stream()
stacks:wait(SLOW, 1000):wait("[short]", 3, 100):wait(SLOW, 1000, 0):wait("[ready]", 3, 0):wait(SLOW, 250, 0)
check_longest(b:finish(), {}, { f = "1 2250.000" }, "sums between parts")
b, stacks = new_stream()
stacks:wait("[short]", 1000, 100):wait("[short]", 1000, 100):wait("[ready]", 1000, 0):wait("[late]", 20):wait("[late]", 30)
rows = select(2, table_of((t.render(b:finish(), "top", { by = "syscall" }))))
t.equal(rows, head_of("syscall") .. "    2000.000    65.6        200               [short waits]\n" ..
	"    1000.000    32.8          0               [runnable]\n" ..
	"      50.000     1.6          2       30.000  [stack unknown: seen too late]\n", "sums have no longest wait")
-- Two threads in the same lines, interleaved in time, one behind the other in the stream.
b, stacks = new_stream()
stacks:wait(SLOW, 1000):wait(SLOW, 1000, 0):wait(SLOW, 1, 0)
b:context(8, 500)
stacks:wait(SLOW, 1000):wait(SLOW, 1000, 0):wait(SLOW, 300, 0)
b:context(9, 3300)
stacks:wait(SLOW, 1000, 0)
local threads = b:finish()
check_longest(threads, {}, { f = "2 2300.000" }, "two threads")
check_longest(threads, { threads = { 7 } }, { f = "1 2001.000" }, "one thread")
check_longest(threads, { threads = { 9 } }, { f = "0 1000.000" }, "a thread with a part")
-- Samples of an event without waits are between.
b = B.new():context(7, 0):meta("clock", "cpu,offcpu"):meta("pid", "7"):meta("wall", "cpu,offcpu")
b:event(0, "task-clock", US, 1000000):event(1, "switch-records", NS, 0, WAITS)
stacks = wait_stacks.new(b)
stacks:wait(SLOW, 1000, 1, 1)
local ON = { stacks:stack("main > lua f > called fetch") }
b:sample(ON[1], ON[2], 3):labels(1, { { "route", "/a" } })
stacks:wait(SLOW, 1000, 0, 1):wait(SLOW, 5, 1, 1)
b:sample(ON[1], ON[2], 2):labelled(1)
stacks:wait(SLOW, 30, 1, 1)
local NO_TICK = { stacks:stack("main > lua f > called fetch > [no tick]") }
b:sample(NO_TICK[1], NO_TICK[2], 1)
local both = b:finish()
check_longest(both, {}, { f = "3 2000.000" }, "two events")
check_longest(both, { event = "wall" }, { f = "3 2000.000" }, "a sum")
check_longest(both, { labels = { "route=/a" } }, { f = "1 30.000" }, "labels")
head = table_of(render(both, "top", { event = "wall" }))
t.contains(head, "waits: blocking    2.035 s, 3 waits\nwaits: without Lua 0.000 s, 0 waits\nwaits: unknown     0.000 s, 0 waits\n",
	   "a sum: CPU time does not wait")
t.contains((t.render(both, "top", { event = "wall", by = "syscall" })), "               [on CPU]\n", "a sum: CPU time has no longest wait")
t.contains((t.render(both, "top", { event = "wall", by = "syscall" })), "  2000.000  [waiting: read]\n",
	   "a sum: longest wait")

-- Nothing blocks: no table. What a loop's callbacks compute blocks it, too.
do
  local function told(blocks_ms, o)
    local m = B.new():context(7, 0):meta("clock", "cpu,offcpu"):meta("wall", "cpu,offcpu"):meta("pid", "7")
    m:event(0, "task-clock", US, 1000000):event(1, "switch-records", NS, 0, WAITS)
    local with = wait_stacks.new(m)
    with:wait("main > lua f > uv_run > epoll_wait > [epoll_wait]", 5, 1, 1):wait("main > [ready]", 20, 3, 1)
    if blocks_ms > 0 then with:wait("main > lua f > uv_run > lua g > read > [read]", blocks_ms, 1, 1) end
    for line, ms in pairs { ["main > lua f > uv_run > on_timer > lua g"] = 30, ["main > lua f > work"] = 7, ["main > uv_run"] = 8 } do
      local lua, host = with:stack(line)
      m:sample(lua, host, 1, nil, ms * 1000, 0)
    end
    return (t.render(m:finish(), "top", copy_of({ blocking = true, brief = true, title = "x.bin" }, o)):gsub("\n          ", " "))
  end
  local IN_CALLBACKS = "0.030 s on CPU in callbacks: report -e cpu shows them\n"
  local WAITS_LINE = "\nwaits     idle 0.005 s, 1 wait in uv_run; blocking %s; [runnable] 0.020 s\n"
  t.contains(told(0), WAITS_LINE:format("0.000 s, 0 waits") .. "\nnothing blocks\n" .. IN_CALLBACKS, "nothing blocks")
  t.contains(told(0, { weight = "waits" }), "\nnothing blocks\n", "nothing blocks, weights are waits")
  t.contains(told(2), WAITS_LINE:format("0.002 s, 1 wait"), "a line blocks: the waits")
  t.contains(told(2), "[waiting: read]\n\n" .. IN_CALLBACKS, "callbacks compute for longer")
  t.ok(not told(40):find("callbacks", 1, true), "callbacks compute for less")
  t.ok(not told(0, { include = { "nobody" } }):find("nothing blocks", 1, true), "filters, not the program")
end

-- Parts of the time; a part of a wait is left.
local function read_files(streams, o)
  return t.with_files(streams, function(paths) return assert(reader.read_all(paths, o)) end)
end
-- In a part of the time, a wait has its time there, and counts once.
b, stacks = new_stream()
for _, wait in ipairs { { 7, 1000, 1000, 1 }, { 7, 2000, 1000, 0 }, { 7, 2001, 1, 0 }, { 8, 1500, 1000, 1 }, { 8, 2500, 1000, 0 },
			{ 8, 2800, 300, 0 }, { 9, 4300, 1000, 0 } } do
  b:context(wait[1], wait[2] * 1000 - 1000)
  stacks:wait(SLOW, wait[3], wait[4])
end
local timed = b:finish()
for _, case in ipairs { { 0, 2000, "2 2000.000" }, { 0, 2500, "2 2001.000" }, { 1500, 2600, "2 1100.000" },
			{ 2000, 1e9, "2 1000.000" }, { 2500, 3400, "1 300.000" }, { 900, 1010, "2 110.000" } } do
  check_longest(read_files({ timed }, { timeline = true, from = case[1] * 1000, to = case[2] * 1000 }), {}, { f = case[3] },
		("from %d to %d"):format(case[1], case[2]))
end
-- Two files of processes with the same ids of threads: the parts of one do not count for the other.
local function of_process(pid, ...)
  local s, of = B.new():context(7, 0):meta("clock", "offcpu"):meta("pid", pid):event(0, "switch-records", NS, 0, WAITS)
  of = wait_stacks.new(s)
  for i, ms in ipairs { ... } do of:wait(SLOW, ms, i == 1 and 1 or 0) end
  return s:finish()
end
check_longest(read_files({ of_process("1", 1000, 1000, 1), of_process("2", 1000, 1000, 1000, 5) }, { timeline = true }), {},
	      { f = "2 3005.000" }, "merged")
-- Without a timeline nothing is known of single waits; all else is the same.
local p = assert(reader.parse_string(threads))
check_longest(p, {}, { f = "2 -" }, "no timeline")
local with, without = render(threads, "top", {}), render_profile(p, "top", { blocking = true })
t.equal(without, (with:gsub("2300%.000", "        ")), "no timeline: table")
t.ok(#render_profile(assert(reader.parse_string(stream)), "top", { by = "syscall" }) > 100, "no timeline: --by=syscall")
-- Nor is it known without the number of waits.
b = B.new():context(7, 0):meta("clock", "offcpu"):event(0, "offcpu", NS, 0)
stacks = wait_stacks.new(b)
for _ = 1, 3 do b:sample(({ stacks:stack(SLOW) })[1], 0, 1, nil, 5e6) end
check_longest(b:finish(), {}, { f = "0 -" }, "no second weight")

-- -- Other formats ---------------------------------------------------------

local FOLDED = [[
main;f (a.lua:10);fetch;[page fault] 1000000
main;f (a.lua:10);fetch;read;[waiting: read] 14000000
main;pcall;[waiting: futex] 1500000
main;uv_run;callback;g (a.lua:20);nap;[waiting: nanosleep] 7000000
]]
t.equal(render(stream, "folded"), FOLDED, "folded")
t.contains(render(stream, "folded", { no_host = true, lines = true }), "g (a.lua:21);nap;[waiting: nanosleep] 7000000\n",
	   "folded, --no-host, --lines")
t.equal(render(stream, "folded", { loops = { "fetch" } }), FOLDED:match("[^\n]*\n[^\n]*\n(.*)$"), "folded, --loop")
t.equal(render(stream, "folded", { weight = "waits" }), (FOLDED:gsub("14000000", "3"):gsub("7000000", "2"):gsub("1%d00000", "1")),
	"folded, --weight=waits")
local d = pprof.decode(render(stream, "pprof"))
t.equal(pprof.folded(d, 2, 1), FOLDED, "pprof")
d = json.decode(render(stream, "json"))
local sum = 0
for _, sample in ipairs(d.samples) do sum = sum + sample.weight end
t.equal(#d.samples .. " " .. sum, "7 23500000", "json")
d = json.decode(render(stream, "speedscope")).profiles[1]
t.equal(d.endValue, 23500000, "speedscope")
t.equal(#json.decode(render(stream, "gecko")).threads[1].samples.data, 7, "gecko")
t.contains(render(stream, "tree"), "\n      23.500   100.0        0.000     0.0  all\n", "tree")
t.contains(render(stream, "svg"), "<title>[waiting: read] (14.000 ms, 59.57%)</title>", "svg")
d = json.decode(render(stream, "flamegraph"):match('id="data">\n(.-)\n</script>'))
sum = 0
for i = 3, #d.nodes, 3 do sum = sum + d.nodes[i] end
t.equal(sum, 23500000, "flamegraph")
-- Only the waits of the event, even where a format shows all events.
d = json.decode(render(both, "json"))
t.equal(#d.samples .. " " .. d.samples[1].event, "4 offcpu", "json of two events")

-- -- Comparisons -----------------------------------------------------------

b, stacks = new_stream()
stacks:wait(READ, 10):wait(LUA_IDLE, 5000):wait(NAP, 10)
local base = b:finish()
local out = render(stream, "top", { lines = true }, base)
t.contains(out, "\n" .. LINES, "compared: head")
rows = select(2, table_of(out))
t.contains(rows, "    59.6     +9.6     59.6     +9.6  [waiting: read]\n", "compared")
t.ok(not rows:find("longest"), "compared: shares of frames")
t.ok(rows:find("f (a.lua:11)", 1, true), "compared: lines")
t.contains(select(2, table_of(render(stream, "top", { by = "syscall" }, base))), "    29.8    -20.2     29.8    -20.2  [waiting: nanosleep]\n",
	   "compared: system calls")
t.equal(render(stream, "folded", {}, stream), (FOLDED:gsub("(%d+)\n", "%1 %1\n")), "compared: folded")

t.equal(view.new(parse(stream), { blocking = true }):default_title("x"), "x, blocking", "title")
t.equal(view.new(parse(stream), {}):default_title("x"), "x", "title of all waits")

-- -- Events ----------------------------------------------------------------

-- The event of waits is the default, wherever it stands. The sum has it, too.
local function event_of(clocks, wall, o)
  local names, s = {}, B.new():context(7, 0):meta("clock", clocks):meta("pid", "7")
  if wall then s:meta("wall", wall) end
  for name in clocks:gmatch("[^,]+") do names[#names + 1] = name end
  for i, name in ipairs(names) do
    local is_waits = name == "offcpu" or name == "coroutine-wait" or name == "lock-wait"
    s:event(i - 1, name .. "-used", is_waits and NS or US, is_waits and 0 or 1000000, is_waits and WAITS or nil)
  end
  local v, err = view.new(parse(s:sample(0, 0, 1, nil, nil, 0, names[1] ~= "cpu" and { 1 } or nil):finish()), o)
  return v and v.event.name or err
end
for _, o in ipairs { { blocking = true }, { by = "syscall" } } do
  local what = next(o)
  t.equal(event_of("offcpu", nil, o), "offcpu", what)
  t.equal(event_of("cpu,offcpu", nil, o), "offcpu", what .. ": second event")
  t.equal(event_of("cpu,coroutine-wait,offcpu", nil, o), "offcpu", what .. ": waits of coroutines are none of threads")
  t.equal(event_of("cpu,offcpu", "cpu,offcpu", o), "offcpu", what .. ": before the sum")
  t.equal(event_of("offcpu,cpu", "cpu,offcpu", o), "offcpu", what .. ": before the sum, other order")
  t.equal(event_of("cpu,offcpu", "cpu,offcpu", copy_of(o, { event = "wall" })), "wall", what .. ": the sum by name")
  t.equal(event_of("cpu,offcpu", nil, copy_of(o, { event = "offcpu-used" })), "offcpu", what .. ": the used event")
  t.equal(event_of("lock-wait,offcpu", nil, o), "lock-wait", what .. ": the first one")
  t.equal(event_of("cpu,coroutine-wait", nil, o), "the event 'cpu' has no waits; record a profile with the clock offcpu or wall",
	  what .. ": no event of waits")
  t.equal(event_of("cpu,coroutine-wait", nil, copy_of(o, { event = "coroutine-wait" })),
	  "the event 'coroutine-wait' has no waits; record a profile with the clock offcpu or wall", what .. ": coroutines")
  t.equal(event_of("cpu,offcpu", nil, copy_of(o, { event = "cpu" })),
	  "the event 'cpu' has no waits; choose --event=offcpu", what .. ": CPU time")
  t.equal(event_of("cpu,offcpu", nil, copy_of(o, { event = "none" })), "the profile has no event 'none', its events are: cpu, offcpu",
	  what .. ": unknown event")
end

-- -- The command -----------------------------------------------------------

local function command(arguments, status, expected_out, expected_err)
  local got_status, stdout, stderr = t.parse(arguments)
  t.equal(got_status, status, arguments .. ": status")
  if expected_out then t.contains(stdout, expected_out, arguments .. ": output") end
  t.contains(stderr, expected_err or "", arguments .. ": message")
  if not expected_err then t.equal(stderr, "", arguments .. ": message") end
  return stdout
end

t.with_file(stream, function(path)
  local table_of_lines = head_of("line") .. F_ROW .. G_ROW .. PCALL_ROW
  command("--blocking " .. path, 0, LINES .. "shown              23.500 ms, 7 samples\n\n" .. table_of_lines)
  command("--blocking --format=top " .. path, 0, table_of_lines)
  command("--blocking --format=top --by=line " .. path, 0, table_of_lines)
  command("--blocking --by=line " .. path, 0, table_of_lines)
  command("--blocking --by=function " .. path, 0, head_of("function") .. FUNCTIONS)
  command("--blocking --by=syscall " .. path, 0, "7.000  [waiting: read]\n")
  command("--format=top --by=syscall " .. path, 0, "2000.000  [waiting: poll]\n")
  t.equal(command("--blocking --format=folded " .. path, 0), FOLDED, "command: folded")
  t.ok(not command("--blocking --loop=fetch --loop ^nap$ " .. path, 0, "in ev_run, fetch, uv_run\n",
		   path .. ": --loop=fetch matches fetch\n"):find("  f (", 1, true), "command: --loop")
  command("--blocking --loop=no_such " .. path, 0, LINES, ": warning: --loop=no_such matches no function that waits or has called one\n")
  -- The report of waits has few lines above the table, though these waits are of all kinds.
  local report = ("'%s' '%s/tools/luajit-sysprof.lua' report "):format(t.luajit, t.source)
  for _, o in ipairs { "--blocking", "--by=syscall", "--blocking --loop=x 2>/dev/null", "" } do
    local _, out = t.shell(report .. path .. " " .. o)
    local brief = out:match("^(.-)\n\n")
    t.ok(select(2, brief:gsub("\n", "")) < 5, o .. ": a short head: " .. brief)
    if o == "--blocking" then
      t.contains(brief, "\nwaits     idle 2.020 s, 2 waits in ev_run, uv_run; blocking 0.024 s, 7 waits;", "one line of waits")
    end
  end
  -- A pattern matches a name with the line of the definition, and with the current one, in each format.
  for _, name in ipairs { "^f (a.lua:10)$", "^f (a.lua:11)$" } do
    local said = ("--loop=%s matches f (a.lua:10), Lua code: all its own sleeps are idle; a C function is exacter\n"):format(name)
    command(("--blocking --loop='%s' %s"):format(name, path), 0, "in ev_run, f (a.lua:10), uv_run\n", said)
    t.equal(command(("--blocking --format=folded --loop='%s' %s"):format(name, path), 0, nil, said), FOLDED:match("[^\n]*\n[^\n]*\n(.*)$"), name)
  end
  command("--blocking --thread=9 " .. path, 0, "shown              0.000 ms, 0 samples\n", "no sample")
  command("--blocking --exclude=read --exclude=fault --exclude=nap --exclude=pcall " .. path, 0, head_of("line"), "no sample")
  t.write_file("a.lua", "one\ntwo\n")
  command("--blocking --annotate=a.lua " .. path, 0, "      15.000    63.8            4      11  [not in this file]\n")
  command("--blocking --diff=" .. path .. " " .. path, 0, "    59.6      0.0     59.6      0.0  [waiting: read]\n")
  command("--blocking --from=0.0005 --to=0.0015 " .. path, 0, "       1.500   100.0          2        1.000  f (a.lua:11)")
  command("--blocking --from=10 " .. path, 0, head_of("line"), "no sample")
  command("--blocking " .. path .. " " .. path, 0, "waits: blocking    0.047 s, 14 waits\n")
  command("--loop=x " .. path, 2, "", "--loop needs --blocking")
  command("--blocking --loop= " .. path, 2, "", "expected NAME")
  command("--by=syscall " .. path, 2, "", "--by needs --format=top")
  command("--by=syscall --format=folded " .. path, 2, "", "--by needs --format=top")
  command("--by=syscall --blocking --format=folded " .. path, 2, "", "--by needs --format=top")
  command("--lines --by=syscall --blocking " .. path, 2, "", "--lines means --by=line; remove it or --by=syscall")
  command("--blocking --diff=" .. path .. " --format=tree " .. path, 2, "", "--diff needs")
  command("--blocking=1 " .. path, 2, "", "takes no value")
end)

-- Annotated source has the waits of one event only.
t.with_file(both, function(path)
  local shown = command("--blocking --annotate=a.lua " .. path, 0, "   total ms  total%        waits    line  text\n",
    "20.0% of cpu has no place: [stack unknown: no tick came]")
  t.contains(shown, "    2035.000   100.0            3      11  [not in this file]\n", "annotate, two events")
end)

b = B.new():context(7, 0):lfunc(1, 1, "@a.lua", "f"):stack(1, { F.cbound, F.lfunc(1, 1) }):sample(1, 0, 1)
t.with_file(b:finish(), function(path)
  command("--blocking " .. path, 1, "", "the event 'cpu' has no waits; record a profile with the clock offcpu or wall\n")
  command("--format=top --by=syscall " .. path, 1, "", "the event 'cpu' has no waits")
  t.with_file(stream, function(other)
    command(("--blocking --diff=%s %s"):format(path, other), 1, "", "has no waits")
  end)
end)

-- -- Hostile streams -------------------------------------------------------

-- Names with any bytes are shown as clean text, and are taken for what they are.
b = new_stream()
b:lfunc(1, 1, "@\27[31m\n.lua", "\0\255;\n"):hsym(0x1000, 0x1000, "uv_run\n"):hsym(0x2000, 0x2000, "[waiting: poll]")
b:hsym(0x3000, 0x3000, ""):hsym(0x4000, 0x4000, "."):hsym(0x5000, 0x5000, "..uv_run"):hsym(0x6000, 0x6000, "uv_run."):ffunc(1, "[on CPU]")
local POLL = F.work(G.SPF_WORK_WAIT, 8)
for i = 1, 6 do
  b:stack(2 * i, { F.cbound, F.lfunc(1, 1), POLL }):stack(2 * i + 1, { F.vm, F.host(0x1000 * i) })
  b:sample(2 * i, 2 * i + 1, 1, nil, 1e6, 0, { 1 })
end
b:stack(20, { F.cbound, F.ffunc(1), POLL }):sample(20, 0, 1, nil, 2e6, 0, { 1 })
local hostile = b:finish()
out = render(hostile, "top", {})
t.contains(out, "waits: idle        0.001 s, 1 wait in uv_run.\n", "odd names: idle")
t.contains(out, "\nwaits: blocking    0.007 s, 6 waits\n", "odd names: blocking")
t.ok(not out:find("[%z\1-\9\11-\31\127-\255]"), "odd names: clean text")
for _, pattern in ipairs { "*", "\0", "%", "^", "$", ("x"):rep(5000), ("*"):rep(100), "[", "\255" } do
  t.ok(#render(hostile, "top", { loops = { pattern } }) > 0, "odd patterns")
end
t.contains((t.render(hostile, "top", { by = "syscall" })), "      8.000   100.0          7        2.000  [waiting: poll]\n",
	   "odd names: system calls")

-- Huge numbers of waits and weights.
b, stacks = new_stream()
local id = stacks:stack(SLOW)
b:sample(id, 0, 1, nil, 2^45, 0, { 2^45 }):sample(id, 0, 1, nil, 2^45, 0, { 0 }):sample(id, 0, 1, nil, 0, 0, { 2^40 })
out = render(b:finish(), "top", {})
t.ok(not out:find("%f[%a]nan%f[%A]") and not out:find("%f[%a]inf%f[%A]"), "huge numbers")
t.contains(out, (" %.0f %.3f  f (a.lua:10)"):format(2^45 + 2^40, 2^46 / 1e6), "huge numbers: row")

-- A view that has no room to look at all stacks says so, even if it shows none of those that it left out.
b, stacks = new_stream()
for i = 1, 40 do stacks:wait(("main > lua f%d > %s > [poll]"):format(i, i <= 25 and "uv_run" or "nap"), 1) end
p = parse(b:finish())
p.size = (100 - 2^26) / 2^6	-- Room for 100 frames: 6 of each stack, on both sides.
local narrow = assert(view.new(p, { blocking = true }))
t.equal(narrow.frame_room, 100, "little room")
narrow:each(function() end)
t.equal(narrow.left_out, 40 - 16, "little room: left out")
t.contains(narrow:room_text(), "24 samples are left out: ", "little room: message")

-- Stacks of markers and of frames that are out of place.
b = new_stream()
local WAIT = F.work(G.SPF_WORK_WAIT, 8)
for i, side in ipairs {
  { { F.broken(2), WAIT }, {} }, { { F.cut(5, 1), WAIT }, { F.vm } }, { { WAIT }, { F.broken(3) } }, { { WAIT }, { F.cut(5, 2) } },
  { { F.resume, WAIT }, { F.vm } }, { { F.cbound, WAIT }, { F.vm, F.vm } }, { { WAIT, WAIT }, {} }, { { F.again(3, 1), WAIT }, {} },
  { { WAIT, F.lfunc(9, 1) }, { F.host(1) } }, { { F.vm, F.host(1), WAIT }, { F.lfunc(1), F.cbound } }, { { F.trace(1, 9), WAIT }, { F.vm } },
  { { F.lfunc(99, 1), F.again(1000, 1), WAIT }, { F.host(5), F.again(1000, 1) } }, { { WAIT, F.again(3, 1) }, {} },
} do
  b:stack(2 * i, side[1]):stack(2 * i + 1, side[2]):sample(2 * i, #side[2] > 0 and 2 * i + 1 or 0, 1, nil, 1e6, 0, { 1 })
end
hostile = b:finish()
for _, o in ipairs { {}, { by = "syscall" }, { loops = { "*" } }, { no_lua = true }, { no_host = true }, { depth = 1 }, { root = "[" } } do
  for _, format in ipairs { "top", "folded", "json", "tree", "pprof" } do
    local s = assert(reader.parse_string(hostile, { timeline = true }))
    t.ok(#render_profile(s, format, copy_of(o, { blocking = o.by == nil })) >= 0, "odd stacks: " .. format)
  end
end

t.finish()
