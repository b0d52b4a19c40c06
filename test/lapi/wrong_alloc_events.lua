-- The Lua API, LUAJIT_SYSPROF and luajit-sysprof refuse a wrong event alloc with one sentence,
-- and take a right one. luajit-parse-sysprof refuses wrong questions about a profile.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")
local sysprof = misc.sysprof
local RUN = ("TMPDIR=. '%s/bin/luajit-sysprof' run "):format(os.getenv("SYSPROF_BUILD"))

local MAX = "1099511627776"
local BYTES = "expected /period=BYTES/, such as alloc/period=524288/"
local RANGE = "it must be between 1 and " .. MAX
local wrong = {
  { "alloc/period=0/", "the period of 'alloc' is 0 bytes; " .. RANGE },
  { "alloc/period=1099511627777/", RANGE },
  { "alloc/period=" .. ("9"):rep(20) .. "/", "the period of 'alloc' is " .. ("9"):rep(20) .. " bytes; " .. RANGE },
  { "alloc/period=" .. ("9"):rep(41) .. "/", "the period of 'alloc' is " .. ("9"):rep(40) .. "... bytes; " .. RANGE },
  { "alloc/period=-1/", BYTES }, { "alloc/period=10k/", BYTES }, { "alloc/period=1.5/", BYTES },
  { "alloc/period=10", BYTES }, { "alloc/period=/", BYTES }, { "alloc/period/", BYTES },
  { "alloc/", BYTES }, { "alloc:u", BYTES }, { "alloc/size=1/", BYTES },
  { "alloc/period=1/x", BYTES },
  { "cpu+alloc+alloc/period=1/", "'alloc' twice" },
  { "allocs", "'allocs' is not a clock or event (did you mean 'alloc'?); choose wall, jit, alloc, offcpu, coroutine-wait, trace-abort, " },
  { "live", "'live' is recorded by 'alloc'; choose alloc" }, { "lives", "'lives' is not a clock" },
  { "allo", "'allo' is not a clock or event" },
}
t.write_file("none.lua", "print('ran')\n")
for _, case in ipairs(wrong) do
  local list, message = case[1], case[2]
  local commas = list:gsub("+", ",")
  local ok, err, code = sysprof.start({ mode = "C", clock = commas, path = "none.bin" })
  t.equal(ok, nil, list)
  t.contains(err, message, list)
  t.ok(type(code) == "number" and code > 0, list .. ": errno")
  t.equal(select(2, sysprof.stop()), "profiler is not running", list .. ": not started")
  t.equal(io.open("none.bin"), nil, list .. ": no file")

  local status, out, said = t.shell(("LUAJIT_SYSPROF='path=none.bin,clock=%s' '%s' none.lua")
				    :format(list, t.luajit))
  t.equal(status .. out, "0ran\n", list .. ": LUAJIT_SYSPROF")
  t.contains(said, message, list .. ": LUAJIT_SYSPROF")
  t.equal(select(2, said:gsub("\n", "")), 1, list .. ": one sentence: " .. said)

  status, out, said = t.shell(RUN .. ("--clock='%s' -o none.bin none.lua"):format(commas))
  t.equal(status .. out, "2", list .. ": run")
  t.contains(said, message, list .. ": run")
  t.equal(select(2, said:gsub("\n", "")), 1, list .. ": run: one sentence: " .. said)
  t.equal(io.open("none.bin"), nil, list .. ": run: no file")
end

-- -- Each way --------------------------------------------------------------

t.write_file("work.lua", [[
local function tables() local list = {} for i = 1, 2e5 do list[i % 8 + 1] = { i } end end
for _ = 1, 20 do tables() end
]])
-- Returns what top says of a profile.
local function top(path, arguments)
  local status, out, err = t.parse("--format=top --event=alloc " .. arguments .. " " .. path)
  t.equal(status .. err, "0", path)
  return out
end
for _, clock in ipairs { "alloc", "cpu+alloc", "alloc/period=65536/", "cpu+alloc/period=65536/" } do
  local name = clock:gsub("[+/]", "-")
  local paths = { name .. ".api.bin", name .. ".env.bin", name .. ".run.bin" }
  local commas = clock:gsub("+", ",")
  t.equal(sysprof.start({ mode = "C", clock = commas, path = paths[1] }), true, clock)
  dofile("work.lua")
  t.equal(sysprof.report().samples > 0, true, clock .. ": report")
  t.equal(sysprof.stop(), true, clock)
  t.equal(t.shell(("LUAJIT_SYSPROF='path=%s,clock=%s' '%s' work.lua"):format(paths[2], clock, t.luajit)),
	  0, clock)
  local status, _, err = t.shell(RUN .. ("--clock=%s -o %s work.lua"):format(commas, paths[3]))
  t.equal(status, 0, clock)
  t.ok(err:find("alloc"), clock .. ": summary: " .. err)
  for _, path in ipairs(paths) do
    t.ok(top(path, "--by=type"):find("MiB +%d+%.%d  table\n"), path .. ": types")
    t.contains(top(path, "--no-host --lines"), "(work.lua:1)", path .. ": lines")
    t.ok(top(path, "--weight=objects"):find("objects"), path .. ": objects")
  end
end
-- The option period is the period.
local ok = sysprof.start({ mode = "C", clock = "alloc", period = 16384, path = "period.bin" })
dofile("work.lua")
t.equal(ok and sysprof.stop(), true, "the option period")
t.contains(top("period.bin", ""), "one in 16 KiB asked", "the option period")

-- -- Questions -------------------------------------------------------------

t.equal(sysprof.start({ mode = "C", path = "cpu.bin" }), true, "cpu")
dofile("work.lua")
t.equal(sysprof.stop(), true, "cpu")
for arguments, message in pairs {
  ["--event=alloc cpu.bin"] = "alloc",
  ["--format=top --by=type cpu.bin"] = "the event 'cpu' has no types; choose an event with types, such as alloc",
  ["--format=top --by=type cpu-alloc.run.bin"] = "the event 'cpu' has no types",
  ["--weight=objects cpu.bin"] = "the event 'cpu' has no weight 'objects', its weights are: samples, event, cpu",
  ["--weight=bytes cpu.bin"] = "the event 'cpu' has no weight 'bytes'",
  ["--weight=cpu alloc.run.bin"] = "the event 'alloc' counts bytes, use --weight=event",
  ["--weight=megabytes alloc.run.bin"] =
    "the event 'alloc' has no weight 'megabytes', its weights are: samples, event, bytes, objects",
} do
  local status, out, err = t.parse(arguments)
  t.equal(status .. out, "1", arguments)
  t.contains(err, message, arguments)
  t.equal(select(2, err:gsub("\n", "")), 1, arguments .. ": one sentence: " .. err)
end
local status, out, err = t.shell(RUN .. "--weight=megabytes -o none.txt none.lua")
t.equal(status .. out, "2", "run: an unknown weight")
t.contains(err, "option '--weight': expected samples or event or cpu or bytes or objects or waits, got 'megabytes'",
	   "run: an unknown weight")
t.finish()
