-- The reader's constants are those of the format header, and no others.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local G = require("sysprof.base.grammar")

local header = t.read_file(t.source .. "/src/profile/format/lj_sysprof_format.h")
	       :gsub("\\\n%s*", " ")

local defined = {}
for name, rest in header:gmatch("#define%s+(SPF_[%w_]+)[ \t]+([^\n]+)") do
  local value = rest:gsub("/%*.*", "")
  if value:find("^[%w()* ]+$") then defined[name] = assert(loadstring("return " .. value))() end
end

for name, value in pairs(defined) do
  t.equal(G[name], value, name .. " in the grammar")
end
for name in pairs(G) do
  if name:match("^SPF_") then
    t.ok(defined[name], name .. " is not in the header")
  end
end

-- The magics stand in the header's grammar as characters.
local function magic_of(rule)
  local a, b, c = header:match(rule .. "%s*:= '(%l)' '(%l)' '(%l)'")
  return a and a .. b .. c
end
t.equal(G.MAGIC_SYMTAB, magic_of("symtab"), "magic of the symbol table")
t.equal(G.MAGIC_PROFILE, magic_of("profile"), "magic of the profile")
t.equal(G.MAGIC_CHUNK, magic_of("magic"), "magic of a chunk")

-- Counters with an index have room for all indices.
local function check_room(first, count)
  for name, value in pairs(defined) do
    local is_inside = name:find("^SPF_COUNTER_") and value > G[first] and value < G[first] + count
    t.ok(not is_inside, ("%s + %d is %s"):format(first, value - G[first], name))
  end
end
check_room("SPF_COUNTER_TOTAL", 4)	-- Older streams had so many events.
t.ok(G.SPF_EVENT__MAX <= G.SPF_COUNTER_EVENT_STEP, "counters for an event")
check_room("SPF_COUNTER_LUA_BROKEN", G.SPF_BROKEN__MAX)
check_room("SPF_COUNTER_HOST_BROKEN", G.SPF_BROKEN__MAX)

-- The reasons that the reader has words for.
local join = require("sysprof.show.join")
for reason = 0, G.SPF_BROKEN__MAX - 1 do
  t.ok(not join.reason(reason):find("%d"), "words for broken reason " .. reason)
end

-- The reader has words for each check, and the same groups as the header.
local refusals = require("sysprof.show.refusals")
local checks, group, side = 0, nil, nil
for line in header:gmatch("[^\n]+") do
  if line:find("^/%* .*SPF_BROKEN_") then
    group, side = line:match("SPF_BROKEN_[%u_]+"), line:match("^/%* (%u%l+) side") or ""
  end
  local name, words = line:match("^#define (SPF_REFUSED_%u[%u_]*) +%d+ +/%* (.*) %*/")
  if name and not name:find("__MAX") then
    local check = refusals.by_code[G[name]]
    t.ok(check, name .. ": no words for it")
    t.equal(check and check.group, G[group], name .. ": group")
    local expected = side ~= "" and side or words:match("^%u%l+")
    t.equal(check and check.side, expected:lower(), name .. ": side")
    checks = checks + 1
  end
end
t.equal(checks, G.SPF_REFUSED__MAX, "checks in the header")
t.ok(G.SPF_COUNTER_REFUSED + G.SPF_REFUSED__MAX <= G.SPF_COUNTER__MAX, "counters for all")

t.finish()
