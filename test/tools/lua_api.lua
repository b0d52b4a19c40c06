-- The reader as modules of another program: the example in doc/tool.md runs, and has the
-- documented fields.

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.grammar")
local reader = require("sysprof.reader")
local view = require("sysprof.view")
local F = B.F

local function stream()
  local b = B.new():meta("clock", "cpu"):context(5)
  b:lfunc(1, 3, "@x.lua", "f"):hsym(0x10, 0x10, "main")
  b:stack(1, { F.cbound, F.lfunc(1) }):stack(2, { F.host(0x10), F.vm })
  b:sample(1, 2, 3, G.SPF_VMST_GC, 700):sample(1, 2, 1, G.SPF_VMST_LFUNC)
  return b:counters({ { G.SPF_COUNTER_OVERRUNS, 4 } }):finish()
end

-- Profile.
local p = assert(reader.parse_string(stream()))
t.equal(p.complete, true, "complete")
t.equal(#p.problems, 0, "problems")
t.equal(p:problem_text(), nil, "problem_text")
t.equal(p.version, G.SPF_VERSION, "version")
t.equal(p.meta.clock, "cpu", "meta")
t.equal(p.counters[G.SPF_COUNTER_OVERRUNS], 4, "counters")
local samples, us = p:totals()
t.equal(samples, 4, "samples")
t.equal(us, 3100, "microseconds")
t.equal(p:states()[G.SPF_VMST_GC], 3, "states")

-- A view, stack by stack.
local seen = 0
view.new(p, { no_host = true }):each(function(names, n, value)
  seen = seen + value
  t.equal(n, 1, "frames")
  t.equal(names[1].text, "f (x.lua:3)", "name")
  t.equal(names[1].kind, "lua", "kind")
end)
t.equal(seen, 4, "values")

-- Reading by a function, in parts of any size, and when it fails.
local s = stream()
for _, size in ipairs { 1, 2, 7, 1000 } do
  local at = 0
  local parsed = reader.parse(function()
    local part = s:sub(at + 1, at + size)
    at = at + #part
    return part ~= "" and part or nil
  end)
  t.equal(parsed:totals(), 4, "samples read in parts of " .. size)
end
local first = true
local failed = reader.parse(function()
  if first then
    first = false
    return s:sub(1, 40)
  end
  return nil, "Input/output error"
end)
t.equal(failed.complete, false, "reading fails in the middle")
t.contains(failed:problem_text(), "Input/output error", "why reading failed")
local none, message = reader.parse(function() return nil, "Input/output error" end)
t.equal(none, nil, "reading fails at once")
t.equal(message, "Input/output error", "why reading failed at once")
none, message = reader.read("/no/such/file")
t.equal(none, nil, "no such file")
t.equal(message, "No such file or directory", "message of no such file")

-- The document's example, as a program of its own.
local doc = t.read_file(t.source .. "/doc/tool.md")
local example = doc:match("```lua\n(.-)```")
t.with_file(s, function(path)
  t.with_file((example:gsub("app%.bin", path)), function(program)
    local status, out, err = t.shell(("LUA_PATH='%s/tools/?.lua' '%s' %s")
				     :format(t.source, t.luajit, program))
    t.equal(status, 0, "status of the example: " .. err)
    t.equal(out, "f (x.lua:3) 3100\n2100\tf (x.lua:3)\tlua\n1000\tf (x.lua:3)\tlua\n",
	    "output of the example")
  end)
end)

t.finish()
