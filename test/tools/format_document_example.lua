-- The worked example in doc/format.md is a stream that decodes to the document's text.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")

local doc = t.read_file(t.source .. "/doc/format.md")
local hex, folded = doc:match("```hex\n(.-)```"), doc:match("```folded\n(.-)```")
t.ok(hex and folded, "the document has a hex and a folded block")

local bytes, size = {}, 0
for line in hex:gmatch("[^\n]+") do
  local offset, dump = line:match("^(%x+)  ([%x ]+)")
  t.equal(tonumber(offset, 16), size, "offset of line '" .. line .. "'")
  for byte in dump:gmatch("%x%x") do
    size = size + 1
    bytes[size] = string.char(tonumber(byte, 16))
  end
end
bytes = table.concat(bytes)

local out, p = t.render(bytes)
t.equal(out, folded, "stacks of the example")
t.equal(p:problem_text(), nil, "the example is complete")
local samples, us = p:totals()
t.equal(samples, 4, "samples of the example")
t.equal(us, tonumber(doc:match("that is (%d+) microseconds")), "its CPU time")
t.equal(bytes:sub(1, #B.PROLOGUE), B.PROLOGUE, "its prologue")

-- Every constant that the document names exists.
local G = require("sysprof.base.grammar")
for name in doc:gmatch("`(SPF_[%u_]+)`") do
  t.ok(G[name], "constant " .. name)
end

t.finish()
