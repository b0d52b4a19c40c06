-- What of a program's memory is live: at the end, at a dump, after a collection, when lua_close
-- frees all. The rest of what the VM holds is from before the start.

local json = require("json_decode")
local t = require("tools_test")

local FILE = "live.bin"
local REPORT = ("'%s' '%s/tools/luajit-sysprof.lua' report "):format(t.luajit, t.source)

local function start(options)
  local o = { mode = "C", clock = "alloc/period=1/", path = FILE, force = true }
  for key, value in pairs(options or {}) do o[key] = value end
  assert(misc.sysprof.start(o))
end

-- Returns the events of a profile by name, and the report by label.
local function read(file)
  local status, out, err = t.parse("--format=json " .. (file or FILE))
  t.equal(status, 0, err)
  local d, by_name = json.decode(out), {}
  for _, e in ipairs(d.events) do by_name[e.name] = e end
  return by_name, d.report, d
end

-- Returns the live bytes, or objects, by the line of this file.
local function by_line(file, weight)
  local _, out = t.parse(("--event=live --no-host --lines --weight=%s %s")
			 :format(weight or "bytes", file or FILE))
  local sums = {}
  for stack, n in out:gmatch("([^\n]*) (%d+)\n") do
    local line = stack:match(".*live_objects%.lua:(%d+)")
    if line then sums[tonumber(line)] = (sums[tonumber(line)] or 0) + tonumber(n) end
  end
  return sums
end

local function line_of(f) return debug.getinfo(f, "S").linedefined end

local store = { list = {} }	-- Keeps objects alive.
local function clear() store.list = {} end
local function keep(n) for i = 1, n do store.list[i] = { i } end end
local function drop(n) for i = 1, n do local _ = { i } end end
local function strings(n) for i = 1, n do store.list[i] = "string " .. i end end

jit.off(keep)
jit.off(drop)
keep(1000)
clear()
collectgarbage()
collectgarbage()

-- -- Garbage ---------------------------------------------------------------

local TABLE = 64 + 3 * 8	-- A table of one element is one block.

collectgarbage("stop")
start()
keep(500)
drop(300)
local held = collectgarbage("count") * 1024
assert(misc.sysprof.stop())
local e, report = read()
local sums, objects = by_line(), by_line(nil, "objects")
t.equal(objects[line_of(drop)], 300, "garbage that is not freed is live")
t.equal(sums[line_of(drop)], 300 * TABLE, "its bytes")
t.ok(sums[line_of(keep)] >= 500 * TABLE, "500 tables are alive")
t.equal(report.collector, "no cycle has ended", "report: no cycle")
t.ok(math.abs(e.live.total - held) < 100, ("the VM holds %.0f bytes, the profile has %.0f")
     :format(held, e.live.total))
t.equal(e.live.standard_error, 0, "nothing is estimated")
t.equal(e.live.second, "objects", "objects")
t.equal(e.live.left_of, "alloc", "whose they are")
t.contains(report["live: the rest"], "from before the start", "report: the rest")
t.equal(tonumber((report["event live"]:match("^(%d+) samples"))), e.live.second_weight, "report: samples")

-- The same, with a collection at the end: it stays stopped.
clear()
collectgarbage()
collectgarbage("stop")
start { gc = true }
keep(500)
drop(300)
assert(misc.sysprof.stop())
e, report = read()
sums = by_line()
t.equal(sums[line_of(drop)], nil, "gc = true: no garbage")
t.ok(sums[line_of(keep)] >= 500 * TABLE, "gc = true: 500 tables are alive")
t.contains(report.collector, "1 cycle, the last one ended 0.", "gc = true: report")
t.ok(tonumber(report["alloc: ended"]:match("(%d+) after 0 cycles")) >= 300, "gc = true: ended")
t.equal(e.alloc.things.began - e.alloc.things.ended - e.alloc.things.dropped, e.live.samples, "left")
local before = collectgarbage("count")
drop(100000)
t.ok(collectgarbage("count") > before + 1000, "gc = true: the collector stays stopped")
collectgarbage("restart")

-- -- Ages ------------------------------------------------------------------

-- Returns live objects of a line by age.
local function ages(line)
  local _, _, d = read()
  local sum, frame = {}, nil
  for i, f in ipairs(d.frames) do
    if f.first_line == line then frame = i - 1 end
  end
  for _, s in ipairs(d.samples) do
    local stack = d.stacks[s.stack + 1]
    for _, f in ipairs(s.event == "live" and stack or {}) do
      if f == frame then
	sum[s.labels.age] = (sum[s.labels.age] or 0) + s.second_weight
	break
      end
    end
  end
  return sum
end

local function make(n) local all = {} for i = 1, n do all[i] = { i } end return all end
jit.off(make)
clear()
collectgarbage()
collectgarbage("stop")
start()
local kept = {}
for i, n in ipairs { 10, 20, 30, 40 } do
  kept[i] = make(n)
  for _ = 1, 5 - i do
    collectgarbage()
    collectgarbage("stop")
  end
end
kept[5] = make(50)
assert(misc.sysprof.stop())
-- They have lived through 10, 6, 3, 1 and 0 cycles, each with its list and the list's array.
local by_age = ages(line_of(make))
local function objects_of(n) return n + 2 end
t.equal(by_age["8-15 cycles"], objects_of(10), "age 10")
t.equal(by_age["4-7 cycles"], objects_of(20), "age 6")
t.equal(by_age["2-3 cycles"], objects_of(30), "age 3")
t.equal(by_age["1 cycle"], objects_of(40), "age 1")
t.equal(by_age["0 cycles"], objects_of(50), "age 0")
local status, out = t.parse("--format=top --by=age --event=live --weight=objects --include=make " .. FILE)
t.equal(status, 0, "by age")
t.contains(out, "  4-7 cycles\n", "by age: rows")
status, out = t.parse("--event=live --label='age=0 cycles' --no-host --weight=objects " .. FILE)
t.equal(status, 0, "an age is a label")
t.contains(out, "make", "an age is a label")
for _, case in ipairs { { "--by=age --event=alloc", "the event 'alloc' has no ages; choose an event with ages, such as live" },
			{ "--by=type --event=live", nil } } do
  local code, _, err = t.parse("--format=top " .. case[1] .. " " .. FILE)
  t.equal(code, case[2] and 1 or 0, case[1])
  if case[2] then t.contains(err, case[2], case[1]) end
end
local _, err
status, out = t.shell(REPORT .. "--older=4 --by=age --weight=objects --include=make " .. FILE)
t.equal(status, 0, "older: status")
t.ok(out:find("  4-7 cycles\n", 1, true) and out:find("  8-15 cycles\n", 1, true) and not out:find("  2-3 cycles\n", 1, true),
     "older: rows: " .. out)
status, out = t.shell(REPORT .. "--older=8 " .. FILE)
t.equal(status, 0, "older, by line: status")
t.contains(out, "  Lua line\n", "older: lines are the default")
t.contains(out, ("%d)\n"):format(line_of(make)), "older: the line")
status, _, err = t.shell(REPORT .. "--older=6 " .. FILE)
t.equal(status, 2, "older: no power of two")
t.contains(err, "option '--older': expected 1, 2, 4, 8 or another power of two", "older: no power of two")
t.equal(#kept, 5, "the lists")
collectgarbage("restart")

-- -- Dumps -----------------------------------------------------------------

t.equal(select(2, misc.sysprof.dump()), "profiler is not running", "a dump without a profile")

-- What grew between two dumps.
clear()
collectgarbage()
start()
keep(400)
collectgarbage()
assert(misc.sysprof.dump())
t.write_file("first.bin", t.read_file(FILE))
strings(700)
keep(400)
collectgarbage()
assert(misc.sysprof.dump())
t.write_file("second.bin", t.read_file(FILE))
clear()
collectgarbage()
assert(misc.sysprof.stop())
local function table_of(file)
  local own, text = by_line(file, "objects"), {}
  for line, name in pairs { [line_of(keep)] = "keep", [line_of(strings)] = "strings" } do
    text[#text + 1] = ("%s %s"):format(name, own[line] and own[line] > 20 and "live" or "dead")
  end
  table.sort(text)
  return table.concat(text, ", ")
end
t.equal(table_of("first.bin"), "keep live, strings dead", "the first dump")
t.equal(table_of("second.bin"), "keep live, strings live", "the second dump")
t.equal(table_of(FILE), "keep dead, strings dead", "the end")
-- Amounts are compared, not shares: strings took the place of 300 tables.
local code, folded = t.parse("--event=live --weight=objects --no-host --diff=first.bin second.bin")
t.equal(code, 0, "a dump is a whole profile")
t.contains(select(2, read("second.bin")).dump, "went on", "a dump is a whole profile")
t.equal(select(2, read()).dump, nil, "the end is no dump")
local grown
for stack, base, now in folded:gmatch("([^\n]*) (%d+) (%d+)\n") do
  if stack:find("strings %(.*%)$") then grown = now - base end
end
t.ok(grown >= 300 and grown < 310, ("what grew: %s strings"):format(grown))
local _, compared = t.parse("--event=live --weight=objects --no-host --format=top --diff=first.bin second.bin")
t.ok(compared:find("\n +30%d +%+30%d +%d+ +%+%d+  strings "), "what grew: table\n" .. compared)
_, compared = t.parse("--event=live --no-host --format=top --diff=second.bin first.bin")
t.ok(compared:find("\n +0 B +%-[%d.]+ KiB +0 B +%-[%d.]+ KiB  strings "), "what shrank: table\n" .. compared)

-- -- lua_close -------------------------------------------------------------

-- The VM of a script is live when lua_close frees it.
t.write_file("script.lua", [[
local list = {}
for i = 1, 1000 do list[i] = { i } end
for i = 1, 100 do local _ = { i } end
collectgarbage("stop")
]])
local luajit = t.luajit
t.equal(t.shell(("LUAJIT_SYSPROF=path=closed.bin,clock=alloc,period=1,force '%s' script.lua"):format(luajit)), 0, "close")
e = read("closed.bin")
t.ok(e.live.second_weight > 1000, "what lua_close frees was live: " .. e.live.second_weight)
t.ok(math.abs(e.live.total - e.live.weight) < 64 * 1024, "little is from before the start")
t.equal(t.shell(("LUAJIT_SYSPROF=path=closed.bin,clock=alloc,period=1,force,gc '%s' script.lua"):format(luajit)), 0, "gc")
local collected = read("closed.bin")
t.ok(collected.live.weight < e.live.weight, ("gc: what blocks held that have ended is garbage at lua_close: %d of %d bytes"):format(
     collected.live.weight, e.live.weight))
t.ok(collected.live.second_weight > 1000, "gc: the main chunk's table is live at lua_close")

-- A finalizer that fails at the last collection changes nothing.
t.write_file("script.lua", [[
local p = newproxy(true)
getmetatable(p).__gc = function() error("from the finalizer") end
p = nil
print("done")
]])
status, out = t.shell(("LUAJIT_SYSPROF=path=closed.bin,clock=alloc,period=1,force,gc '%s' script.lua"):format(luajit))
t.equal(status, 0, "a finalizer that fails")
t.equal(out, "done\n", "a finalizer that fails")

-- -- pprof -----------------------------------------------------------------

local pprof = require("pprof_decode")
local decoded = pprof.decode(select(2, t.parse("--format=pprof second.bin")))
t.equal(table.concat(decoded.types, " "),
	"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes", "Go's four values")

t.equal(#store.list, 0, "the store is empty at the end")

t.finish()
