-- The screen of top: what it draws in each size, what keys change, names of keys, the sums behind it. No terminal, no program.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local F = B.F
local G = require("sysprof.base.grammar")
local columns = require("sysprof.base.columns")
local keys = require("sysprof.terminal.keys")
local reader = require("sysprof.read.reader")
local topscreen = require("sysprof.terminal.topscreen")
local topsums = require("sysprof.terminal.topsums")

local LONG = "/srv/a_very_long_folder_of_an_application/with_many_parts/of_names/that_do_not_fit/handler.lua"

-- A profile: n1 samples of hot, called by a function with a long name, and n2 of a name in UTF-8. A sample is 1 ms, of 200 ms.
local function profile(n1, n2, label, pid)
  local b = B.new(3):context(7)
  b:meta("pid", tostring(pid or 7)):meta("start_time", "2000000000"):meta("interval_ns", "1000000")
  b:lfunc(1, 10, "@" .. LONG, "handles_each_request"):lfunc(2, 20, "@hot.lua", "hot")
  b:lfunc(3, 30, "@日本語.lua", "größe\27[31m")
  b:stack(1, { F.lfunc(1, 11), F.lfunc(2, 21) }):stack(2, { F.lfunc(1, 12), F.lfunc(3, 31) })
  if label then b:labels(1, { { "route", label } }):labelled(1) end
  if n1 > 0 then b:sample(1, 0, n1, G.SPF_VMST_LFUNC) end
  if n2 > 0 then b:sample(2, 0, n2, G.SPF_VMST_TRACE) end
  b:counters { { G.SPF_COUNTER_WALL_US, 200000 } }
  return assert(reader.parse_string(b:finish()))
end

-- -- Columns of texts ------------------------------------------------------

t.equal(columns.of("abc"), 3, "columns: ASCII")
t.equal(columns.of("größe"), 5, "columns: two bytes")
t.equal(columns.of("日本"), 4, "columns: wide")
t.equal(columns.of("e\204\129"), 1, "columns: combining")
t.equal(columns.of("\240\159\152\128"), 2, "columns: a picture")
t.equal(columns.cut("日本語", 5), "日本", "cut: not in the middle of a wide one")
t.equal(columns.fit("日本語", 5), "日本 ", "fit: a cut wide one")
t.equal(columns.fit("ab", 4), "ab  ", "fit: spaces")
t.equal(columns.cut("abc", 0), "", "cut: nothing")
t.equal(columns.cut("abc", -2), "", "cut: less than nothing")

-- -- Keys ------------------------------------------------------------------

local function names(...)
  local its, list = keys.new(), {}
  for _, bytes in ipairs { ... } do
    for _, key in ipairs(its.take(bytes, bytes == "")) do list[#list + 1] = key end
  end
  return table.concat(list, ",")
end
t.equal(names("qS?"), "q,S,?", "keys: characters")
t.equal(names("\27[A\27OB\27[5~\27[6~\27[H\27[4~"), "up,down,page up,page down,home,end", "keys: sequences")
t.equal(names("\27[", "5", "~x"), "page up,x", "keys: a sequence in parts")
t.equal(names("\27"), "", "keys: escape or the begin of a sequence")
t.equal(names("\27", ""), "escape", "keys: escape")
t.equal(names("\27[200;3Rq"), "q", "keys: an unknown sequence")
t.equal(names("\27[<0;1;2Mq"), "q", "keys: a mouse")
t.equal(names("\195", "\164"), "ä", "keys: a character in parts")
t.equal(names("\195q\255\128x"), "q,x", "keys: invalid bytes")
t.equal(names("\r\127\t\21\1\0"), "enter,backspace,tab,clear", "keys: control characters")
t.equal(names("\27[" .. ("1"):rep(100) .. "q", ""), "", "keys: a sequence without an end")

-- -- Sums ------------------------------------------------------------------

local sums = topsums.new()
local function row(by, name)
  for _, its in ipairs(sums.tables[by].list) do
    if its.text:find(name, 1, true) then return its end
  end
  return { own = 0, total = 0, all_own = 0, all_total = 0 }
end

sums:begin_round()
sums:add(7, profile(30, 10))
t.equal(row("lua", "hot (hot.lua").own, 30000, "sums: own")
t.equal(row("lua", "handles_each").own, 0, "sums: own of a caller")
t.equal(row("lua", "handles_each").total, 40000, "sums: total of a caller")
t.equal(row("line", "hot.lua:21").own, 30000, "sums: a line")
t.equal(row("vmstate", "TRACE").own, 10000, "sums: a state")
t.equal(sums.samples, 40, "sums: samples")
local used, threads = sums:use()
t.equal(("%.3f of %d"):format(used, threads), "0.200 of 1", "sums: 40 ms of 200 ms")
local function states()
  local list = {}
  for i, its in ipairs(sums:states()) do list[i] = ("%s %.3f"):format(its[1], its[2]) end
  return table.concat(list, " ")
end
t.equal(states(), "interpreted 0.150 compiled 0.050 C 0.000 GC 0.000 compiler 0.000 off CPU 0.800", "sums: states")

sums:begin_round()
sums:add(7, profile(0, 20))
sums:add(8, profile(0, 20, "/b\27[1m", 8))
t.equal(row("lua", "hot (hot.lua").own, 0, "sums: the next round")
t.equal(row("lua", "hot (hot.lua").all_own, 30000, "sums: all rounds")
t.equal(("%.3f of %d"):format(sums:use()), "0.200 of 2", "sums: two programs")
t.equal(row("label", "route=").own, 20000, "sums: a label")
t.equal(row("label", "route=").text, "route=/b?[1m", "sums: a label is cleaned")
t.equal(row("label", "[no label]").own, 20000, "sums: samples without a label")
local copy = sums:copy()
sums:begin_round()
t.equal(states(), "interpreted 0.000 compiled 0.000 C 0.000 GC 0.000 compiler 0.000", "sums: nothing recorded")
t.equal(copy.tables.lua.list[1].total > 0, true, "sums: a copy stays")

-- A function whose name a later window learns, or that one forgets, is one row. Functions of one line stay apart.
do
  local function window(name, line)
    local b = B.new(3):context(7):meta("pid", "7"):meta("interval_ns", "10000000"):lfunc(1, line, "@late.lua", name)
    b:stack(1, { F.lfunc(1, line + 1) }):sample(1, 0, 1, G.SPF_VMST_LFUNC)
    sums:begin_round()
    sums:add(7, assert(reader.parse_string(b:counters({ { G.SPF_COUNTER_WALL_US, 100000 } }):finish())))
  end
  local function texts(by)
    local list = {}
    for i, its in ipairs(sums.tables[by].list) do list[i] = ("%s %.0f"):format(its.text, its.all_own / 1000) end
    return table.concat(list, ", ")
  end
  sums:reset()
  for _, its in ipairs { { "", 10 }, { "f", 10 }, { "", 10 }, { "f", 10 }, { "g", 20 }, { "", 20 }, { "h", 20 }, { "", 20 } } do
    window(its[1], its[2])
  end
  t.equal(texts("lua"), "f (late.lua:10) 4, g (late.lua:20) 3, h (late.lua:20) 1", "sums: late names")
  t.equal(texts("line"), "f (late.lua:11) 4, g (late.lua:21) 3, h (late.lua:21) 1", "sums: late names of lines")
end

-- A function of a file that was edited and loaded again is one row, at its last place.
do
  local function window(...)
    local b = B.new(3):context(7):meta("pid", "7"):meta("interval_ns", "10000000")
    for i, f in ipairs { ... } do
      b:lfunc(i, f[2], "@again.lua", f[1], f[2] + 5):stack(i, { F.lfunc(i, f[2] + 1) }):sample(i, 0, i, G.SPF_VMST_LFUNC)
    end
    sums:begin_round()
    sums:add(7, assert(reader.parse_string(b:counters({ { G.SPF_COUNTER_WALL_US, 100000 } }):finish())))
  end
  local function texts()
    local list = {}
    for i, its in ipairs(sums.tables.lua.list) do
      list[i] = ("%s %.0f %.0f"):format(its.text, its.own / 1000, its.all_own / 1000)
    end
    table.sort(list)
    return table.concat(list, ", ")
  end
  sums:reset()
  window({ "f", 10 }, { "g", 20 })
  window({ "f", 12 })
  t.equal(texts(), "f (again.lua:12) 1 2, g (again.lua:20) 0 2", "sums: a file that was loaded again")
  window({ "f", 12 }, { "g", 22 })
  t.equal(texts(), "f (again.lua:12) 1 3, g (again.lua:22) 2 4", "sums: its other function")
  window({ "f", 10 })
  t.equal(texts(), "f (again.lua:12) 1 4, g (again.lua:22) 0 4", "sums: its old function")
end

-- A window with a sample of 2 ms, and 8 ms of CPU time; one without a sample, and 6 ms.
do
  sums:reset()
  for i, ms in ipairs { 8, 6 } do
    local b = B.new():context(7):meta("pid", "7"):event(0, "cpu", G.SPF_UNIT_US, 10000000)
    b:lfunc(1, 10, "@a.lua", "f"):stack(1, { F.lfunc(1, 11) })
    if i == 1 then b:sample(1, 0, 1, G.SPF_VMST_LFUNC, 2000, 0) end
    b:counters { { G.SPF_COUNTER_WALL_US, 100000 }, { G.SPF_COUNTER_EVENT + G.SPF_EVENT_TOTAL, ms * 1000 } }
    sums:begin_round()
    sums:add(7, assert(reader.parse_string(b:finish())))
  end
  t.equal(row("lua", "f (a.lua").all_own, 2000, "sums: what the samples have")
  t.equal(sums:all_scale(), 7, "sums: all CPU time by that of the samples")
  t.contains(topscreen.new("a", sums, {}):lines(80, 10)[6].text, "  0.0%    0.0%      0.01s      0.01s  f (a.lua:10)",
	     "sums: all CPU time is shown")
end

-- Waits: 30 ms on CPU, 50 ms asleep, 20 ms without a processor.
do
  local b = B.new():context(7):meta("pid", "7"):meta("clock", "cpu"):meta("wall", "cpu,offcpu")
  b:event(0, "cpu", G.SPF_UNIT_US, 1000000):event(1, "offcpu", G.SPF_UNIT_NS, 0)
  b:lfunc(1, 10, "@a.lua", "f"):stack(1, { F.lfunc(1, 11) }):stack(2, { F.lfunc(1, 12), F.work(G.SPF_WORK_WAIT, 1) })
  b:stack(3, { F.work(G.SPF_WORK_READY) })
  b:sample(1, 0, 1, G.SPF_VMST_LFUNC, 30000, 0):sample(2, 0, 1, G.SPF_VMST_FFUNC, 50e6, 1)
  b:sample(3, 0, 1, G.SPF_VMST_CFUNC, 20e6, 1):counters { { G.SPF_COUNTER_WALL_US, 100000 } }
  sums:begin_round()
  sums:add(7, assert(reader.parse_string(b:finish())))
  t.equal(states(), "interpreted 0.300 compiled 0.000 C 0.000 GC 0.000 compiler 0.000 off CPU 0.700", "sums: waits")
end

sums:reset()
t.equal(#sums.tables.lua.list + sums.all_samples, 0, "sums: reset")

-- -- The screen ------------------------------------------------------------

local function new(plain)
  sums = topsums.new()
  sums:add(7, profile(30, 10, "/index"))
  local screen = topscreen.new("nginx, 4 processes: 4711 4712 4713 4714", sums, { plain = plain })
  screen.has_window, screen.seconds = true, 83
  return screen
end

local function picture(screen, width, height)
  local list = screen:lines(width, height)
  t.equal(#list <= height, true, ("%d x %d: rows"):format(width, height))
  for i, line in ipairs(list) do
    t.ok(columns.of(line.text) <= width, ("%d x %d: line %d: %s"):format(width, height, i, line.text))
    t.ok(not line.text:find("%c"), ("%d x %d: control characters in line %d"):format(width, height, i))
    list[i] = line.text
  end
  return table.concat(list, "\n"):gsub(" +\n", "\n")
end

local screen = new()
t.equal(picture(screen, 80, 12), [[
nginx, 4 processes: 4711 4712 4713 4714                                     1:23
CPU 20.0% of a processor  40 samples                                   40 in all
real time: interpreted 15.0%  compiled 5.0%  off CPU 80.0%
[functions]  lines  threads  states  labels                              by %Own
  %Own  %Total    OwnTime  TotalTime  Lua function
 75.0%   75.0%      0.03s      0.03s  hot (hot.lua:20)
 25.0%   25.0%      0.01s      0.01s  größe?[31m (日本語.lua:30)
  0.0%  100.0%      0.00s      0.04s  handles_each_request (...t/handler.lua:10)



q quit  ? help  o sort  / filter  p freeze  r reset]], "80 columns")
t.contains(picture(screen, 200, 50), "  %Own  %Total    OwnTime  TotalTime  Lua function\n", "200 columns: one base")
t.contains(picture(screen, 90, 10), "(..._do_not_fit/handler.lua:10)\n", "90 columns: the end of a name")
t.contains(picture(screen, 40, 10), "  %Own  %Total  Lua function\n 75.0%   75.0%  hot (hot.lua:20)\n", "40 columns")
do
  local its = { text = "/srv/app/of/many/folders/module_57.lua:123", own = 1, total = 1, all_own = 0, all_total = 0 }
  table.insert(sums.tables.lua.list, its)
  t.contains(picture(screen, 40, 12), "  ...ers/module_57.lua:123\n", "40 columns: the end of a place")
  table.remove(sums.tables.lua.list)
end
for _, size in ipairs { { 1, 1 }, { 2, 3 }, { 10, 4 }, { 20, 5 }, { 21, 6 }, { 59, 7 }, { 60, 8 }, { 109, 9 }, { 110, 1000 }, { 500, 3 } } do
  picture(screen, size[1], size[2])
end
t.ok(not picture(new(true), 80, 24):find("[\128-\255]"), "a terminal of ASCII")
local painted = topscreen.paint(screen:lines(80, 24), 80)
t.equal(select(2, painted:gsub("\n", "")), 0, "painted: no scrolling")
t.contains(painted, "\27[2;1HCPU 20.0%", "painted: a place")

-- Presses keys; returns the picture.
local function press(bytes)
  for _, key in ipairs(keys.new().take(bytes, true)) do screen:press(key) end
  return picture(screen, 80, 24)
end

local function shows(bytes, part, what) t.contains(press(bytes), part, what) end

shows("l", "0.03s  hot (hot.lua:21)", "lines")
shows("t", "100.0%  100.0%      0.04s      0.04s  7", "threads")
shows("s", "LFUNC", "states")
shows("b", "route=/index", "labels")
shows("\t", "[functions]", "the next table")
shows("x\27[Z\27[99~\1", "[functions]", "keys without a meaning")
shows("4", "by TotalTime", "sort by a column")
shows("4", "\n  0.0%  100.0%      0.00s      0.04s  handles_each", "sorted")
shows("o", "by %Own", "sort by the next column")
shows("/hot\r", "filter hot  by %Own", "filter")
t.ok(not press(""):find("größe"), "filtered")
shows("/\21größe", "filter: größe_", "a filter while it is typed")
shows("\127\127\27", "filter hot  by %Own", "a filter given up")
shows("/\21no such\r", "no row passes the filter", "a filter without rows")
shows("/\21q\r", "filter q", "a command's key in the filter")
shows("/\21\r", "größe", "no filter")
t.ok(not screen.is_over, "not over")
shows("p", "FROZEN", "frozen")
screen.sums:begin_round()
screen.sums:add(7, profile(0, 40))
shows("", "75.0%   75.0%      0.03s      0.03s  hot", "frozen: the table stays")
shows(" ", "  0.0%    0.0%      0.03s      0.03s  hot", "thawed")
shows("?", "Any key closes this.", "help")
t.ok(not press(""):find("...\n", 1, true), "help fits 80 columns")
shows("", "Enter keeps it; / Ctrl-U Enter removes it", "help: the filter")
t.equal(#screen:lines(80, 24), 24, "help covers the screen")
shows("x", "%Own", "help closed")
shows("r", "waiting for the first samples", "reset")
screen.has_window = true
shows("", "\n  no samples of cpu\n", "nothing: a profile without the real time")
screen.sums:add(7, profile(0, 0))
shows("", "no samples: the program sleeps or waits", "nothing")
screen.sums.programs[7].cpu = 0.01
shows("", "no samples: the CPU time was too short for one", "nothing, but CPU time")
screen.note = "process 7 (x) is stopped"
shows("", "\nprocess 7 (x) is stopped\nq quit", "a note")
local WORDS = ("words "):rep(13):sub(1, -2)	-- 77 columns.
screen.note = WORDS .. " " .. WORDS
shows("", "\n" .. WORDS .. "\n" .. WORDS .. "\nq quit", "a note of two lines")
screen.note = ("words "):rep(100)
shows("", "\n" .. WORDS .. "\n" .. WORDS .. "...\nq quit", "a long note")
t.ok(picture(screen, 80, 7):find("words%.%.%.\n?$"), "a note on a small screen")
press("/ab")
t.ok(picture(screen, 80, 24):find("filter: ab_$"), "a note beside a filter")
press(("cdefghij"):rep(10))
t.ok(picture(screen, 20, 24):find("\n%.%.%.cdefghijcdefghij_$"), "a filter longer than the screen: its end")
press("\21ab\r")
press("q")
t.ok(screen.is_over, "over")

-- Many rows.
screen = new()
for i = 1, 100 do
  local its = { text = ("row %03d"):format(i), own = 100 - i, total = 0, all_own = 0, all_total = 0 }
  sums.tables.lua.list[i] = its
end
local function begins(bytes, row, what) t.equal(press(bytes):match("row %d+"), row, what) end
begins("", "row 001", "the first row")
begins("\27[B\27[B\27[Aj", "row 003", "down")
begins("\27[6~", "row 021", "a page down")
begins("\27[5~\27[5~", "row 001", "a page up, and more")
begins("\27[F", "row 083", "the end")
begins("\27[6~", "row 083", "below the end")
begins("\27[H", "row 001", "the begin")
press("\27[F")
t.ok(picture(screen, 80, 200):find("row 001"), "a larger screen shows all")

-- Rows are bounded.
sums = topsums.new()
for i = 1, 3 do
  local b = B.new(3):context(7)
  b:meta("pid", "7")
  for k = 1, 9000 do b:lfunc(k, k, "@many.lua", ("f%d_%d"):format(i, k)) end
  for k = 1, 9000 do b:stack(k, { F.lfunc(k, k) }):sample(k, 0) end
  sums:add(7, assert(reader.parse_string(b:finish())))
end
t.equal(#sums.tables.lua.list, 20001, "at most so many rows")
t.equal(sums.tables.lua.by_text["[others]"].own, 7000000, "others share one")

t.finish()
