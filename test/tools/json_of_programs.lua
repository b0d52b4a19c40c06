-- JSON that a program sends: whole objects pass and become clean; everything else is refused with its place.

local json = require("json_decode")
local checked = require("sysprof.base.cleanjson")
local t = require("tools_test")

-- Returns a list as a text, or nil and which byte is wrong.
local function listed(s)
  local pieces, wrong = checked.list(s)
  return pieces and table.concat(pieces), wrong
end

local GOOD = {
  [""] = "[]", ["{}\n{}\n"] = "[{},\n{}]", [' { "a" : [ 1 , -2.5e-3 , true , null ] } '] = '[{"a":[1,-2.5e-3,true,null]}]',
  ['{"a":"\27[31m\\u001b\\n\\ud800\\"\\\\"}'] = '[{"a":"?[31m???\\u0022\\u005c"}]',
  ['{"a":"\255"}'] = '[{"a":"\\u005cxff"}]', ['{"</script>":0}'] = '[{"\\u003c/script\\u003e":0}]',
}
for s, expected in pairs(GOOD) do
  t.equal(listed(s), expected, s)
  t.ok(pcall(json.decode, expected), s .. ": is JSON")
end

for s, at in pairs {
  ['{"pid":1}],"evil":[{"x":1'] = 10, ["[]"] = 1, ["1"] = 1, ['{"a":1,}'] = 8, ['{"a":1'] = 7, ['{"a"'] = 2, ['{"a":'] = 6,
  ['{"a":01}'] = 6, ['{"a":1e}'] = 6, ['{"a":+1}'] = 6, ['{"a":nan}'] = 6, ['{"a":1 "b":2}'] = 8, ['{"a":1,"a":2}'] = 8,
  ['{"a":"x'] = 6, ['{"a":"\\x"}'] = 6, ['{"a":"\\u12"}'] = 6, ['{"a":[1,]}'] = 9, ["{'a':1}"] = 2, ['{"a":1}},'] = 8,
  ['{"a":' .. ("9"):rep(100) .. "}"] = 6, [('{"a":'):rep(20)] = 41,
} do
  local got, wrong = listed(s)
  t.equal(got, nil, s)
  t.equal(wrong, at, s .. ": place")
end

-- Any prefix, and any byte changed, gives whole JSON or a place.
local seed = 7
local function random(n) seed = (seed * 1103515245 + 12345) % 2^31 return math.floor(seed / 2^8) % n + 1 end
local whole = '{"pid":12,"coroutines":2,"states":{"running":1,"dead":1},"groups":[\n{"count":1,"state":"running","frames":[' ..
	      '{"kind":"lua","name":"f \\"q\\"","source":"a.lua","line":3},{"kind":"cut","frames":7}]}]}\n'
local ALPHABET = '{}[]",:\\01en -\n\27\255'
local good = 0
for i = 1, 20000 do
  local s = i <= #whole and whole:sub(1, i) or whole
  for _ = 1, i <= #whole and 0 or random(3) do
    local at, c = random(#s), random(#ALPHABET)
    s = s:sub(1, at - 1) .. ALPHABET:sub(c, c) .. s:sub(at + 1)
  end
  local got, wrong = listed(s)
  if got then
    local ok, err = pcall(json.decode, got)
    good = good + 1
    t.ok(ok and not got:find("[%z\1-\9\11-\31]"), ("%q: %q: %s"):format(s, got, tostring(err)))
  elseif not (wrong >= 1 and wrong <= #s + 1) then
    t.ok(false, ("%q: place %s"):format(s, tostring(wrong)))
  end
end
t.ok(good > 100, "some are whole: " .. good)

t.finish()
