-- TIMEOUT: 600
-- Names of chunks: the file, the chunk's name, or a short beginning of the source on one
-- line, whatever bytes it has.

local t = require("tools_test")
local sysprof = misc.sysprof
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "

jit.off()

function spin()
  local s = 0
  for i = 1, 300 do s = s + i % 7 end
  return s
end

-- Source, its name (by default the source itself), and how a function in it and
-- the chunk itself are shown.
local chunks = {
  { "function c1() spin() end c1()", nil,
    'c1 ([string "function c1() spin() end c1()"]:1)',
    'main chunk ([string "function c1() spin() end c1()"])' },
  { "function c2() spin() end\nc2()", nil,
    'c2 ([string "function c2() spin() end..."]:1)' },
  { "\n \t function c3() spin() end c3() --\1\27[31m\255\195\169", nil,
    'c3 ([string "function c3() spin() end c3() --??[31m\\xff..."]:2)' },
  { "function c4() spin() end c4() --[[\195\169" .. ("\r\nx"):rep(1000) .. "]]", nil,
    'c4 ([string "function c4() spin() end c4() --[[\195\169..."]:1)' },
  { "function c5() spin() end c5() local long" .. ("g"):rep(100000), nil,
    'c5 ([string "function c5() spin() end c5() local long..."]:1)' },
  { "function c6() spin() end c6()", "=name of c6", "c6 (name of c6:1)",
    "main chunk (name of c6)" },
  { "function c7() spin() end c7()", "@no/such/c7.lua", "c7 (no/such/c7.lua:1)" },
  { "function c8() spin() end c8()", "@odd;\n\255.lua", "c8 (odd:?\\xff.lua:1)" },
  { "function c9() spin() end c9()", "@" .. ("d/"):rep(1000) .. "c9.lua", "c9 (d/d/" },
}

local function all_seen(out)
  for _, c in ipairs(chunks) do
    if not out:find(";" .. c[3], 1, true) then return false end
    if c[4] and not out:find(";" .. c[4], 1, true) then return false end
  end
  return true
end

local out
for _ = 1, 6 do
  local deadline = os.clock() + 10
  assert(sysprof.start({ mode = "C", interval = 0.1, clock = "wall-signal", path = "chunks.bin" }))
  local loaded = {}
  for i, c in ipairs(chunks) do loaded[i] = assert(load(c[1], c[2])) end
  repeat
    for _, f in ipairs(loaded) do f() end
  until sysprof.report().samples >= 2000 or os.clock() > deadline
  assert(sysprof.stop())
  local status
  status, out = t.shell(parse .. "--no-host chunks.bin")
  t.equal(status, 0, "the reader")
  if all_seen(out) then break end
end
for _, c in ipairs(chunks) do
  t.ok(out:find(";" .. c[3], 1, true), "not found: " .. c[3])
  if c[4] then t.ok(out:find(";" .. c[4], 1, true), "not found: " .. c[4]) end
end
t.ok(not out:gsub("\n", ""):find("%c"), "no control characters")
t.finish()
