-- The event offcpu: wrong thresholds get one sentence, right ones work.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")
local sysprof = misc.sysprof

local FORM = "expected /threshold=NANOSECONDS/, such as offcpu/threshold=2000000/"
local RANGE = "it must be between 100000 and 1000000000 nanoseconds"
local wrong = {
  { "offcpu/threshold=99999/", RANGE }, { "offcpu/threshold=1000000001/", RANGE },
  { "offcpu/threshold=0/", RANGE }, { "offcpu/threshold=" .. ("9"):rep(25) .. "/", RANGE },
  { "offcpu/threshold=-1/", FORM }, { "offcpu/threshold=2ms/", FORM }, { "offcpu/threshold=/", FORM },
  { "offcpu/threshold=2000000", FORM }, { "offcpu/period=2000000/", FORM }, { "offcpu/", FORM },
  { "offcpu:u", FORM }, { "offcpu/threshold=2000000/x", FORM },
  { "offcpu,offcpu/threshold=2000000/", "'offcpu' twice" },
  { "offcpus", "'offcpus' is not a clock or event" }, { "offcp", "'offcp' is not a clock or event" },
}
for _, case in ipairs(wrong) do t.refuses_clock(case[1], case[2]) end

local ffi = require("ffi")
ffi.cdef("int usleep(unsigned);")
for _, list in ipairs { "offcpu", "offcpu/threshold=100000/", "offcpu/threshold=1000000000/", "cpu,offcpu" } do
  t.equal(sysprof.start({ mode = "C", clock = list, path = "waits.bin" }), true, list)
  for _ = 1, 5 do ffi.C.usleep(20000) end
  t.equal(sysprof.report().limit == nil or type(sysprof.report().limit) == "string", true, list)
  t.equal(sysprof.stop(), true, list)
  local status, out, err = t.parse("--event=offcpu waits.bin")
  t.equal(status .. err, "0", list)
  t.ok(out:find("usleep;.*%[waiting: clock_nanosleep%] %d+\n") or out:find("[short waits]", 1, true) or
       out:find("[stack unknown", 1, true), list .. ": " .. out)
end
