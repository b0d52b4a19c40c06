-- The table: its rows by function, line, module and state of the VM.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F = B.F

local b = B.new():context(7, 0)
b:module(0x1000, 0x2000, 0x1000, "/bin/p"):hsym(0x1010, 0x1000, "main")
b:module(0x2000, 0x3000, 0x2000, "/lib/l.so"):hsym(0x3010, 0x3000, "lost")
b:lfunc(1, 0, "@dir/x.lua"):lfunc(2, 5, "@dir/x.lua", "f"):lfunc(3, 9, "@y.lua", "g")
b:lfunc(4, 1, "return 1", "s"):ffunc(1, "string.rep")
-- main; chunk:3; f:6; f:7  and a builtin, a C function without a symbol
b:stack(1, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 6), F.lfunc(2, 7) })
b:stack(2, { F.cbound, F.lfunc(1, 3), F.lfunc(3, 10), F.ffunc(1) })
b:stack(3, { F.cbound, F.lfunc(1, 3), F.lfunc(4, 1), F.resume, F.lfunc(3, 11),
	     F.trace(1, 1), F.work(G.SPF_WORK_GC, G.SPF_GC_ATOMIC) })
b:stack(10, { F.host(0x1010), F.vm }):stack(11, { F.host(0x1010), F.vm, F.host(0x2020) })
b:stack(12, { F.host(0x1010), F.vm, F.vm, F.host(0x3010) })
b:sample(1, 10, 1, G.SPF_VMST_LFUNC):sample(2, 11, 2, G.SPF_VMST_FFUNC)
b:sample(3, 12, 4, G.SPF_VMST_GC)
local stream = b:finish()

-- expected: rows "self total compiled name" in order, "-" for no number.
local function check(what, options, expected)
  local out, rows = t.render(stream, "top", options), {}
  for row in out:match("\n\n[^\n]+\n(.*)"):gmatch("[^\n]+") do
    local self, total, rest = row:match("^ +(%d+) +[%d.]+ +(%d+) +[%d.]+(.*)$")
    local compiled, name = rest:match("^ +([%d.]+)  (.*)$")
    if not name then compiled, name = "-", rest:match("^ +(.*)$") end
    rows[#rows + 1] = ("%s %s %s %s"):format(self, total, compiled, name)
  end
  t.equal(table.concat(rows, "\n"), table.concat(expected, "\n"), what)
  return out
end

local BY_FUNCTION = {
  "4 4 - lost", "2 2 - l.so+0x20", "1 1 0.0 f (dir/x.lua:5)", "0 7 - main",
  "0 7 0.0 main chunk (dir/x.lua)", "0 6 66.7 g (y.lua:9)", "0 4 - [coroutine]",
  "0 4 - [gc: atomic]",
  '0 4 0.0 s ([string "return 1"]:1)', "0 2 - string.rep",
}
check("default", {}, BY_FUNCTION)
t.contains(check("functions", { by = "function" }, BY_FUNCTION), "  function\n", "head")
t.contains(check("lines", { by = "line", lines = true }, {
  "4 4 - lost", "2 2 - l.so+0x20", "1 1 0.0 f (dir/x.lua:7)", "0 7 - main",
  "0 7 0.0 main chunk (dir/x.lua:3)", "0 4 - [coroutine]",
  "0 4 - [gc: atomic]", "0 4 100.0 g (y.lua:11)",
  '0 4 0.0 s ([string "return 1"]:1)', "0 2 0.0 g (y.lua:10)", "0 2 - string.rep",
  "0 1 0.0 f (dir/x.lua:6)",
}), "  line\n", "head, lines")
t.contains(check("modules", { by = "module" }, {
  "4 4 - [unknown]", "2 2 - /lib/l.so", "1 7 0.0 dir/x.lua", "0 7 - /bin/p",
  "0 6 66.7 y.lua", "0 4 - [VM]", '0 4 0.0 [string "return 1"]', "0 2 - [Lua builtins]",
}), "  module\n", "head, modules")
t.contains(check("states", { by = "vmstate" }, { "4 4 - GC", "2 2 - FFUNC", "1 1 - LFUNC" }),
	   "  vmstate\n", "head, states")
t.contains(check("a filter", { states = { G.SPF_VMST_FFUNC }, no_host = true },
		 { "2 2 - string.rep", "0 2 - g (y.lua:9)", "0 2 - main chunk (dir/x.lua)" }),
	   "\nshown              2 samples\n", "what a filter leaves")
t.contains(t.render(stream, "top", { states = { G.SPF_VMST_GC }, weight = "cpu" }),
	   "\nshown              4.000 ms, 4 samples\n", "what a filter leaves, cpu")
t.contains(t.render(stream, "top", { by = "module", limit = 2 }),
	   "... 6 more modules (--limit=0 shows all)\n", "limit")

t.with_file(stream, function(path)
  local function command(arguments, status, text)
    local got, out, err = t.parse(arguments .. " " .. path)
    t.equal(got, status, arguments .. ": status")
    t.contains(status == 0 and out or err, text, arguments)
  end
  command("--format=top --by=vmstate", 0, "57.1            4    57.1  GC\n")
  command("--format=top --by=line", 0, "f (dir/x.lua:7)")
  command("--format=top --by=line --lines", 0, "f (dir/x.lua:7)")
  command("--format=top --by=lualine", 0, "Lua line")
  command("--format=top --by=module --lines", 2, "remove it or --by=module")
  command("--by=module", 2, "--by needs --format=top")
  command("--format=top --by=x", 2, "expected lua or function or line or lualine or module or vmstate")
end)

t.finish()
