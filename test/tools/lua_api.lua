-- The reader as a library of another program: the example in doc/tool.md runs, functions and fields
-- exist, and what fails is a sentence.

local t = require("tools_test")
local B = require("stream_builder")
local sysprof = require("sysprof")
local F, G = B.F, sysprof.grammar

local function stream()
  local b = B.new():meta("clock", "cpu"):context(5)
  b:lfunc(1, 3, "@x.lua", "f"):hsym(0x10, 0x10, "main")
  b:stack(1, { F.cbound, F.lfunc(1) }):stack(2, { F.host(0x10), F.vm })
  b:sample(1, 2, 3, G.SPF_VMST_GC, 700):sample(1, 2, 1, G.SPF_VMST_LFUNC)
  return b:counters({ { G.SPF_COUNTER_OVERRUNS, 4 } }):finish()
end

-- Profile.
local p = assert(sysprof.parse_string(stream()))
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
sysprof.view(p, { no_host = true }):each(function(names, n, value)
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
  local parsed = sysprof.parse(function()
    local part = s:sub(at + 1, at + size)
    at = at + #part
    return part ~= "" and part or nil
  end)
  t.equal(parsed:totals(), 4, "samples read in parts of " .. size)
end
local first = true
local failed = sysprof.parse(function()
  if first then
    first = false
    return s:sub(1, 40)
  end
  return nil, "Input/output error"
end)
t.equal(failed.complete, false, "reading fails in the middle")
t.contains(failed:problem_text(), "Input/output error", "why reading failed")
local none, message = sysprof.parse(function() return nil, "Input/output error" end)
t.equal(none, nil, "reading fails at once")
t.equal(message, "Input/output error", "why reading failed at once")
none, message = sysprof.read("/no/such/file")
t.equal(none, nil, "no such file")
t.equal(message, "No such file or directory", "message of no such file")

-- Several files, and the one that is missing.
t.with_file(s, function(path)
  t.equal(assert(sysprof.read(path)):totals(), 4, "a file")
  t.equal(assert(sysprof.read({ path, path })):totals(), 8, "two files")
  local nothing, err, which = sysprof.read({ path, "/no/such/file" })
  t.equal(nothing, nil, "one of two files is missing")
  t.equal(which .. ": " .. err, "/no/such/file: No such file or directory", "which one")
end)
t.equal(select(2, sysprof.read({})), "expected a file, or a list of files", "no file")

-- Outputs: by a function, and into a file.
local view = sysprof.view(p)
local function rendered(format, to)
  local out = {}
  local ok, err = sysprof.render(to or view, format, function(part) out[#out + 1] = part end)
  return ok and table.concat(out), err
end
t.contains(rendered("folded"), "f (x.lua:3)", "folded")
t.equal(rendered("collapsed"), rendered("folded"), "another name of a format")
for _, format in ipairs { "top", "tree", "flamegraph", "svg", "pprof" } do
  t.ok(#rendered(format) > 0, format)
end
local singles = sysprof.view(assert(sysprof.parse_string(s, { timeline = true })))
for _, format in ipairs { "speedscope", "gecko", "json" } do
  t.ok(#rendered(format, singles) > 0, format)
  t.equal(select(2, rendered(format)),
	  ("the format of '%s' needs single samples; read the profile with { timeline = true }"):format(format), format)
end
local expected = "; expected one of folded, top, tree, flamegraph, svg, pprof, speedscope, gecko, json"
t.equal(select(2, rendered("doc")), "there is no format 'doc'" .. expected, "an unknown format")
t.equal(select(2, rendered(nil)), "there is no format" .. expected, "no format")
t.equal(select(2, sysprof.render(view, nil, "x.doc")), "the ending of 'x.doc' tells no format" .. expected, "an ending")
t.equal(sysprof.render(view, nil, "api.folded"), true, "into a file")
t.equal(t.read_file("api.folded"), rendered("folded"), "what is in the file")
t.equal(sysprof.render(view, "top", "api.folded"), true, "over a file")
t.equal(t.read_file("api.folded"), rendered("top"), "what is in the file then")
t.contains(select(2, sysprof.render(view, "top", "/no/folder/x")), "cannot write /no/folder/x: ", "no folder")

-- The fields.
t.equal(sysprof.events.list(p)[1].samples, 4, "events")
t.contains(table.concat(sysprof.symbols.KINDS, " "), "lua", "kinds of names")
t.equal(select(2, sysprof.annotate.new(view, "/no/such.lua")) ~= nil, true, "a listing of no source")
t.equal(sysprof.reader, nil, "no other field")

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
