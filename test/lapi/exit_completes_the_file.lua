-- A program without stop has a complete profile, however it ends.

local t = require("tools_test")
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "

local program = [[
assert(misc.sysprof.start{ mode = "C", interval = 1, clock = "wall-signal", path = "end.bin" })
local s = 0
repeat
  for i = 1, 1e5 do s = s + i %% 3 end
until misc.sysprof.report().samples >= 20
%s
]]
local ends = {
  { "os.exit", "os.exit(7)", 7 },
  { "os.exit with close", "os.exit(7, true)", 7 },
  { "os.exit true", "os.exit(true)", 0 },
  { "os.exit in a coroutine", "coroutine.wrap(function() os.exit(7) end)()", 7 },
  { "os.exit in a callback", "('x'):gsub('x', function() os.exit(7, true) end)", 7 },
  { "os.exit in pcall", "pcall(os.exit, 7)", 7 },
  { "error", "error('the end')", 1 },
  { "end of the script", "", 0 },
  { "collected state", "collectgarbage() collectgarbage('stop')", 0 },
}

for _, jit in ipairs({ "-jon", "-joff" }) do
  for _, case in ipairs(ends) do
    local what = case[1] .. " " .. jit
    os.remove("end.bin")
    t.write_file("end.lua", program:format(case[2]))
    t.equal((t.shell(("'%s' %s end.lua"):format(t.luajit, jit))), case[3], what)
    local status, out, err = t.shell(parse .. "end.bin")
    t.equal(status, 0, what .. ": the reader: " .. err)
    local sum = 0
    for n in out:gmatch(" (%d+)\n") do sum = sum + n end
    t.ok(sum >= 20, what .. ": samples")
    t.contains(out, "end.lua", what .. ": stacks")
  end
end
t.finish()
