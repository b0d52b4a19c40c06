-- What the compiler gave up, and why: tables by line and reason, flame graphs, annotated source. Functions that
-- were freed, and traces that were flushed before the end, have their lines.

local t = require("tools_test")

local SOURCE = [[
local keep
local function closures(n)
  for i = 1, n do
    keep = function() return i end
  end
end
local function sum(n)
  local s = 0
  for i = 1, n do s = s + i end
  return s
end
closures(300000)
sum(1000)
return keep, sum
]]

t.write_file("shop.lua", SOURCE)
assert(misc.sysprof.start { mode = "C", clock = "cpu,jit", path = "shop.bin" })
assert(loadfile("shop.lua"))()
jit.flush()
collectgarbage()
collectgarbage()
local stop = os.clock() + 0.2
while os.clock() < stop do end
assert(misc.sysprof.stop())

local function output(arguments)
  local status, out, err = t.parse(arguments .. " shop.bin")
  t.equal(status, 0, arguments .. ": status: " .. err)
  return out
end

-- Returns the numbers of a row of a table whose name contains a text.
local function row_of(out, name)
  for line in out:gmatch("[^\n]+") do
    if line:find(name, 1, true) then return tonumber(line:match("^%s*(%d+)")), line end
  end
  t.ok(false, name .. " is no row of\n" .. out)
  return 0, ""
end

local aborts = row_of(output("--format=top -e trace-abort --by=line"), "closures (shop.lua:4) [NYI: bytecode FNEW]")
t.ok(aborts >= 10 and aborts <= 20, "aborts until a loop is blacklisted: " .. aborts)
t.equal(row_of(output("--format=top -e trace-abort --by=reason"), "[NYI: bytecode FNEW]"), aborts, "by reason")
t.equal(row_of(output("--format=top -e trace-abort --by=lua"), "closures (shop.lua:2) [NYI: bytecode FNEW]"), aborts, "by function")
t.equal(row_of(output("--format=top -e trace-blacklist --by=line"), "closures (shop.lua:3) [NYI: bytecode FNEW]"), 1, "blacklist")
t.equal(row_of(output("--format=top -e trace-stop --by=line"), "shop.lua:9"), 1, "a new trace")
t.equal(row_of(output("--format=top -e trace-flush --by=reason"), "[by the program]"), 1, "a flush")
t.contains(output("--format=folded -e trace-abort --lines"), "closures (shop.lua:4);[NYI: bytecode FNEW] " .. aborts,
	   "stacks end in the reason")
t.equal(row_of(output("--format=top -e trace-abort --label='reason=NYI: bytecode FNEW' --by=reason"), "[NYI"), aborts, "a filter")

local source = output("--annotate=shop.lua")
t.ok(source:find("aborts +line  text\n"), "a column of aborts")
local at = source:find(("%d +4      keep = function"):format(aborts))
t.ok(at, "aborts of the line")
t.contains(source, ("^ aborted %d times: NYI: bytecode FNEW\n"):format(aborts), "a note")
t.contains(source, "^ blacklisted once: NYI: bytecode FNEW\n", "a note on the loop")
t.contains(source, "^ compiled once: loops\n", "a note on a trace")

-- The group of the compiler is known at reading, too.
t.equal(row_of(output("--format=top -e jit --by=reason"), "[NYI: bytecode FNEW]"), aborts, "the group")
t.contains(output("--annotate=shop.lua -e jit"), "^ blacklisted once: NYI: bytecode FNEW\n", "notes of the group")

-- A trace ends at a call that is not compiled.
t.write_file("stitch.lua", [[
local n = 0
for i = 1, 300 do
  n = n + i
  n = n + #("x y"):gsub("x", "y")
end]])
assert(misc.sysprof.start { mode = "C", clock = "trace-stop,trace-exit/period=1/", path = "stitch.bin" })
assert(loadfile("stitch.lua"))()
assert(misc.sysprof.stop())
local _, notes = t.parse("--annotate=stitch.lua stitch.bin")
t.contains(notes, 'gsub("x", "y")', "the line of the call")
t.contains(notes, ": stops to call string.gsub, not compiled\n", "a note on the call")
local _, exits = t.parse("--format=top -e trace-exit --by=function stitch.bin")
t.ok(not exits:find("lj_jitevents") and not exits:find("take_exit"), "no frame of the profiler: " .. exits)

local status, _, err = t.parse("--format=top --by=reason shop.bin")
t.equal(status, 1, "cpu has no reasons")
t.contains(err, "the event 'cpu' has no reasons; choose an event with reasons, such as trace-abort", "the message")
t.finish()
