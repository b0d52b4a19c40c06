-- A source of samples that exists in the tests only, lib/hosts/road_source.c, goes through each way
-- to start a profile, the stream, a merge and each format. Each stack, label and thing has the
-- bytes and objects that the program has counted, in compiled code too, beside a clock at
-- 10 kHz.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local json = require("json_decode")
local pprof = require("pprof_decode")

local TAKES = 6000
local build = os.getenv("SYSPROF_BUILD")
local road = ("'%s/test/road_luajit'"):format(build)
local program = ("'%s/test/lib/programs/road_program.lua' %d"):format(t.source, TAKES)

if not io.open(build .. "/test/road_luajit") then
  print("skipped: this build has no profiler")
  os.exit(77)
end

local STARTS = {
  api = road .. " " .. program .. " expected.lua api.bin",
  environment = "LUAJIT_SYSPROF=path=environment.bin,clock=road+cpu,hz=10000,force " .. road ..
    " " .. program .. " expected.lua",
  run = ("%s '%s/tools/luajit-sysprof.lua' run --clock=road,cpu --hz=10000 -o run.bin %s " ..
	 "expected.lua"):format(road, t.source, program),
}

local function parse(arguments, file)
  local status, out, err = t.parse(arguments .. " " .. file)
  t.equal(status, 0, arguments .. " " .. file .. ": " .. err)
  return out
end

-- Returns the sums of folded stacks by the lines of the program's functions, leaf first,
-- without main and the main chunk.
local function by_stack(folded)
  local sums = {}
  for stack, n in folded:gmatch("([^\n]*) (%d+)\n") do
    local lines = {}
    for line in stack:gmatch("road_program%.lua:(%d+)") do table.insert(lines, 1, line) end
    local key = table.concat(lines, " ", 1, #lines - 2)
    sums[key] = (sums[key] or 0) + tonumber(n)
  end
  return sums
end

local function check_stacks(file, expected, weight, times)
  local got = by_stack(parse("--lines --no-host --event=road --weight=" .. weight, file))
  for _, s in ipairs(expected) do
    t.equal(got[s.stack], times * s[weight == "event" and "bytes" or weight],
	    ("%s: %s of %s"):format(file, weight, s.stack))
    got[s.stack] = nil
  end
  t.equal(next(got), nil, file .. ": other stacks")
end

local function sum_of(expected, key)
  local sum = 0
  for _, s in ipairs(expected) do sum = sum + s[key] end
  return sum
end

local function check_formats(file, expected, times)
  local bytes, objects = times * sum_of(expected, "bytes"), times * sum_of(expected, "objects")
  local d = json.decode(parse("--format=json", file))
  local e = d.events[1]
  t.equal(("%s %s %.0f %.0f %s"):format(e.name, e.unit, e.samples, e.weight, e.second),
	  ("road bytes %.0f %.0f objects"):format(times * expected.samples, bytes), "json: event")
  t.equal(e.second_weight, objects, "json: objects")
  t.equal(e.total, bytes, "json: total")
  t.equal(#d.marks, times * expected.marks, "json: marks")
  local sum, second = 0, 0
  for _, s in ipairs(d.samples) do
    if s.event == "road" then sum, second = sum + s.weight, second + s.second_weight end
  end
  t.equal(sum, bytes, "json: weights")
  t.equal(second, objects, "json: objects of samples")
  t.equal(d.events[2].name, "object", "json: what is left")
  t.equal(d.events[3].name, "cpu", "json: the clock beside it")
  t.ok(d.events[3].samples > 0, "json: samples of the clock")

  local p = pprof.decode(parse("--format=pprof", file))
  local column, sums = {}, {}
  for i, name in ipairs(p.types) do column[name], sums[i] = i, 0 end
  for _, s in ipairs(p.samples) do
    for i in ipairs(sums) do sums[i] = sums[i] + s.values[i] end
  end
  t.equal(sums[column["road_space/bytes"]], bytes, "pprof: " .. table.concat(p.types, " "))
  t.equal(sums[column["road_objects/count"]], objects, "pprof: objects")
  d = json.decode(parse("--format=speedscope --event=road --weight=event", file))
  sum = 0
  for _, one in ipairs(d.profiles) do
    for _, w in ipairs(one.weights) do sum = sum + w end
  end
  t.equal(sum, bytes, "speedscope")
  local top = parse("--format=top --event=road", file)
  t.contains(top, ("%d samples"):format(times * expected.samples), "top")
  t.ok(top:find("\nlost +0\n"), "top: nothing lost")
  t.contains(parse("--format=svg --event=road", file), "<svg", "svg")
  t.contains(parse("--format=flamegraph --event=road --weight=event", file), '"unit":"bytes"', "flamegraph")
  t.contains(parse("--format=tree --event=road", file), " all\n", "tree")
end

local function check_labels(file, expected, times)
  for i = 1, #expected.labels, 6 do
    local sum = 0
    local folded = parse(("--event=road --weight=event --label=request=r%d"):format(i), file)
    for n in folded:gmatch(" (%d+)\n") do sum = sum + tonumber(n) end
    t.equal(sum, times * expected.labels[i], ("%s: label %d"):format(file, i))
  end
end

local function check_things(file, expected)
  local line = parse("--format=top", file):match("road: ended +([^\n]*)")
  t.equal(line:match("^%d+"), tostring(expected.ended), file .. ": ended things")
  t.contains(line, (" of %d tracked"):format(expected.began), file .. ": things")
  local d = json.decode(parse("--format=json", file))
  local all = d.events[1].things
  t.equal(d.events[2].samples, all.began - all.ended - all.dropped, file .. ": left")
  t.equal(d.events[2].weight, expected.alive, file .. ": bytes of what is left")
end

local both
for start, command in pairs(STARTS) do
  local file = start .. ".bin"
  local status, out, err = t.shell(command)
  t.equal(status, 0, ("%s: %s%s"):format(start, out, err))
  local expected = dofile("expected.lua")
  t.ok(expected.samples >= TAKES, start .. ": samples")
  check_stacks(file, expected, "event", 1)
  check_stacks(file, expected, "objects", 1)
  check_labels(file, expected, 1)
  check_things(file, expected)
  check_formats(file, expected, 1)
  both = { file = file, expected = expected }
end

-- A merge with a copy has everything twice.
local copy = "copy.bin"
t.write_file(copy, t.read_file(both.file))
local merged = both.file .. " " .. copy
check_stacks(merged, both.expected, "event", 2)
check_stacks(merged, both.expected, "objects", 2)
check_labels(merged, both.expected, 2)
check_formats(merged, both.expected, 2)

t.finish()
