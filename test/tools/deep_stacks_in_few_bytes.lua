-- A few bytes can stand for a stack of thousands of frames, and each sample for another
-- such stack. The size of the profile bounds the reader's memory and output. The commands
-- leave out the samples without room, and report their number in one sentence.
-- TIMEOUT: 600
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local reader = require("sysprof.read.reader")
local stream_of = require("deep_stacks").stream_of

-- 16,000 frames in each of 3,000 stacks: folded, that would be 580 MB, and as a tree
-- 48 million nodes. The limit of memory is far above what the VM itself takes.
local LIMIT = (os.getenv("CFLAGS") or ""):find("sanitize") and "unlimited" or "500000"
for what, stream in pairs { leaves = stream_of(16000, 3000), roots = stream_of(16000, 3000, true) } do
  t.ok(#stream < 120000, "a small file")
  t.with_file(stream, function(path)
    for _, format in ipairs { "folded", "flamegraph", "json" } do
      local status, _, err = t.shell(("ulimit -v %s; %s --lines --format=%s %s >%s"):format(LIMIT,
	t.parser, format, path, path .. ".out"))
      local size = #t.read_file(path .. ".out")
      os.remove(path .. ".out")
      local is_cut = err ~= ""
      t.equal(status, is_cut and 3 or 0, what .. ", " .. format .. ": " .. err)
      t.ok(not is_cut or err:find("^[^\n]* samples? [ia][sr]e? ?left out: [^\n]*\n$") ~= nil, err)
      t.ok(size <= 2^28 + 2^9 * #stream, ("%s: %d bytes"):format(format, size))
      t.ok(is_cut or format == "flamegraph" and what == "leaves", format .. ": something is left out")
    end
  end)
end

-- Stacks of another profile are added one frame at a time, not one stack.
t.with_file(stream_of(16000, 500), function(path)
  local p = assert(reader.read_all { path, path })
  t.equal(p:totals(), 1000, "samples of two profiles")
  t.equal(p.size, 2 * #t.read_file(path), "size of two profiles")
end)

t.finish()
