-- The checks that refused stacks, in the self-report: under the group of the stacks, side
-- by side, and summed over sessions. Profiles without them read as before.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local selfreport = require("sysprof.show.selfreport")
local F = B.F

local function lines_of(...)
  local b = B.new():meta("clock", "cpu"):context(5)
  b:stack(1, { F.broken(G.SPF_BROKEN_CHAIN) }):sample(1, 0, 3)
  for _, list in ipairs { ... } do b:counters(list) end
  local p = assert(reader.parse_string(b:finish()))
  local by_label, labels = {}, {}
  for i, line in ipairs(selfreport.lines(p)) do
    t.equal(by_label[line[1]], nil, line[1] .. ": stands once")
    by_label[line[1]], labels[i] = line[2], line[1]
  end
  return by_label, table.concat(labels, ";")
end

-- As older versions wrote them.
local old = { { G.SPF_COUNTER_LUA_BROKEN + G.SPF_BROKEN_CHAIN, 3 },
	      { G.SPF_COUNTER_HOST_BROKEN + G.SPF_BROKEN_NO_CFI, 2 } }
local lines, labels = lines_of(old)
t.equal(lines["lua stack broken"], "3 (3 invalid frame chain)", "group of the Lua side")
t.equal(lines["host stack broken"], "2 (2 no unwind information)", "group of the host side")
t.ok(not labels:find("lua:") and not labels:find("host:"), "no line of checks: " .. labels)

-- With checks, in a record of their own before or after the groups.
local new = { { G.SPF_COUNTER_REFUSED + G.SPF_REFUSED_CFRAME_LEFT, 1 },
	      { G.SPF_COUNTER_REFUSED + G.SPF_REFUSED_SLOT_NOT_FUNCTION, 2 },
	      { G.SPF_COUNTER_REFUSED + G.SPF_REFUSED_HOST_NO_RULE, 2 },
	      { G.SPF_COUNTER_REFUSED + G.SPF_REFUSED__MAX, 7 } }
for order = 1, 2 do
  lines, labels = lines_of(order == 1 and old or new, order == 1 and new or old)
  t.equal(lines["lua stack broken"], "3 (3 invalid frame chain)", "group of the Lua side")
  t.equal(lines["lua: invalid frame chain"],
	  "2 function slot holds another type, 1 VM frame without Lua frames", "Lua checks")
  t.equal(lines["host: no unwind information"], "2 object without a rule for the address",
	  "host checks")
  t.contains(labels, "lua stack broken;lua: invalid frame chain;host stack broken;" ..
	     "host: no unwind information;vm states", "order of the lines")
end

t.finish()
