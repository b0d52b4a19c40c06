-- The reader's constants of heap snapshots are those of the format header, and no others.
-- BASE: none, it reads no snapshot of this LuaJIT

local t = require("tools_test")
local heapgrammar = require("sysprof.base.heapgrammar")

local header = t.read_file(t.source .. "/src/profile/format/lj_heap_format.h")
local names = 0

for name, value in header:gmatch("#define%s+(HP%u_[%u_]+)[ \t]+(%w+)") do
  names = names + 1
  local number = value:match("^(.*)ull$")
  local want = number and assert(loadstring("return " .. number .. "ULL"))() or tonumber(value)
  t.ok(heapgrammar[name] == want, name)
  heapgrammar[name] = nil
end
t.ok(names > 40, "names in the header: " .. names)
t.equal(header:match("snapshot := '(%l)'") .. header:match("snapshot := '%l' '(%l)'") ..
  header:match("snapshot := '%l' '%l' '(%l)'"), heapgrammar.MAGIC, "magic")
heapgrammar.MAGIC = nil
t.equal(next(heapgrammar), nil, "a name that is not in the header")
t.finish()
