-- Compiled code: which frames a trace covers, and how the formats show it.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local reader = require("sysprof.read.reader")
local symbols = require("sysprof.names.symbols")
local view = require("sysprof.show.view")
local F = B.F

-- Functions a, b, c, each with its number as its line.
local function stream(add)
  local b = B.new():context()
  for fid, name in ipairs { "a", "b", "c" } do b:lfunc(fid, fid, "@x", name) end
  b:hsym(0x1010, 0x1000, "main"):hsym(0x2010, 0x2000, "cf"):ffunc(1, "string.rep")
  b:stack(100, { F.host(0x1010), F.vm }):stack(101, { F.host(0x1010), F.vm, F.host(0x2010) })
  add(b)
  return b:finish()
end

-- -- Kinds of names --------------------------------------------------------

-- Names with + if they are compiled.
local function kinds(frames, host, options)
  local p = assert(reader.parse_string(stream(function(b)
    b:stack(1, frames):sample(1, host or 100)
  end)))
  local text
  view.new(p, options):each(function(names, n)
    local list = {}
    for i = 1, n do
      list[i] = names[i].text:gsub(" %(.*", "") ..
		(names[i].kind == "compiled" and "+" or "")
      t.equal(names[i].plain.text, names[i].text, "the plain name")
      t.ok(names[i].plain.kind ~= "compiled", "the plain name's kind")
    end
    text = table.concat(list, " ")
  end)
  return text
end

local A, BB, C = F.lfunc(1, 1), F.lfunc(2, 2), F.lfunc(3, 3)
t.equal(kinds { F.cbound, A, BB, C }, "main a b c", "no trace")
t.equal(kinds { F.cbound, A, BB, C, F.trace(1, 2) }, "main a b+ c+", "two of three")
t.equal(kinds { F.cbound, A, BB, C, F.trace(1, 0) }, "main a b c", "none")
t.equal(kinds { F.cbound, A, BB, C, F.trace(1, 99) }, "main a+ b+ c+", "more than all")
t.equal(kinds({ F.cbound, A, BB, F.cfunc(0x2000), F.trace(1, 2) }, 101),
	"main a b+ cf", "a C function counts")
t.equal(kinds { F.cbound, A, BB, F.ffunc(1), F.trace(1, 2) },
	"main a b+ string.rep", "a builtin counts")
t.equal(kinds { F.cbound, A, BB, F.trace(1, 1), F.work(0, 4) },
	"main a b+ [gc: sweep]", "work does not count")
t.equal(kinds { F.cbound, A, F.trace(1, 9), F.cbound, BB, F.trace(2, 9) },
	"a+ [host frames missing: the host stack ends early] main b+", "of two runs")
t.equal(kinds({ F.cbound, A, F.cbound, BB, F.trace(2, 9) }, 100, { no_host = true }),
	"a b+", "not over a boundary")
t.equal(kinds({ F.cbound, A, BB, F.trace(1, 1) }, 100, { lines = true, traces = true }),
	"main a [trace 1] b+", "--lines --traces")

-- -- Lines and functions agree ---------------------------------------------

-- Of three calls of b in one line, the last one is compiled.
local recursion = assert(reader.parse_string(stream(function(b)
  b:stack(1, { F.cbound, A, BB, BB, BB, F.trace(1, 1) }):sample(1, 100)
  b:stack(2, { F.cbound, A, BB }):sample(2, 100)
end)))
local by_line = require("sysprof.show.linecosts").count(view.new(recursion), false, function(chunk) return chunk end)
t.equal(by_line["@x"].rows[2].total, 2, "a recursion: total")
t.equal(by_line["@x"].rows[2].compiled, 1, "a recursion: compiled")
local rows = {}
require("sysprof.formats.top").render(view.new(recursion), function(text) rows[#rows + 1] = text end)
t.contains(table.concat(rows), " 50.0  b (x:2)", "a recursion: the function")

-- -- Formats ---------------------------------------------------------------

local mixed = stream(function(b)
  b:stack(1, { F.cbound, A, BB }):stack(2, { F.cbound, A, BB, F.trace(5, 1) })
  b:stack(3, { F.cbound, A, BB, BB, F.trace(5, 2, true) })
  b:sample(1, 100, 4):sample(2, 100, 3):sample(3, 100, 1):sample(3, 101, 2)
end)

t.equal(t.render(mixed), "main;a (x:1);b (x:2) 7\nmain;a (x:1);b (x:2);b (x:2) 1\n" ..
  "main;a (x:1);b (x:2);b (x:2);cf 2\n", "folded stacks do not tell it")
t.equal(t.render(mixed, "folded", { traces = true }),
  "main;a (x:1);[trace 5 loop];b (x:2);b (x:2) 1\n" ..
  "main;a (x:1);[trace 5 loop];b (x:2);b (x:2);cf 2\n" ..
  "main;a (x:1);[trace 5];b (x:2) 3\nmain;a (x:1);b (x:2) 4\n", "--traces")

local top = t.render(mixed, "top")
t.equal(top:match("\n( +self.*)$"), [[
        self   self%        total  total% compiled%  function
           8    80.0           10   100.0      60.0  b (x:2)
           2    20.0            2    20.0            cf
           0     0.0           10   100.0       0.0  a (x:1)
           0     0.0           10   100.0            main
]], "table: once in a sample")
-- Compiled code of a function has one row, whatever its line.
local lines = stream(function(b)
  b:stack(1, { F.cbound, F.lfunc(1, 3), F.trace(5, 1) }):stack(2, { F.cbound, F.lfunc(1, 4), F.trace(5, 1) })
  b:sample(1, 100, 4):sample(2, 100, 3)
end)
local _, rows = t.render(lines, "svg"):gsub("<title>a %(x:1%) %(7 samples", "%0")
t.equal(rows, 1, "frames of compiled code at two lines")
t.contains(t.render(mixed, "top", { lines = true, limit = 1 }),
	   "... 3 more lines (--limit=0 shows all)", "table of lines")

-- The resume of a coroutine has a row, like in the other formats.
local resumed = stream(function(b)
  b:stack(1, { F.cbound, A, F.resume, BB }):stack(2, { F.cbound, A, F.resume })
  b:stack(3, { F.resume })
  b:sample(1, 0, 3):sample(2, 0, 2):sample(3, 0, 1)
end)
t.equal(t.render(resumed, "top"):match("\n( +self.*)$"), [[
        self   self%        total  total%  function
           3    50.0            6   100.0  [coroutine]
           3    50.0            3    50.0  b (x:2)
           0     0.0            5    83.3  a (x:1)
]], "table: coroutines")

-- -- The page --------------------------------------------------------------

local page = t.render(mixed, "flamegraph")
t.contains(page, '"names":["main","a (x:1)","b (x:2)","b (x:2)","cf"]', "names of the page")
t.contains(page, '"kinds":[3,0,0,1,3]', "their kinds")
t.contains(page, '"nodes":[1,0,0,2,1,0,3,2,4,3,3,3,4,3,1,5,4,2]', "nodes of the page")
local SCRIPTS = t.source .. "/tools/sysprof/formats/page/"
local palette = t.read_file(SCRIPTS .. "palette.js")
local _, colours = palette:match("KINDS = %[(.-)\n%];"):gsub('%["', "")
t.equal(colours, #symbols.KINDS, "as many colours as kinds")
for i, kind in ipairs(symbols.KINDS) do
  if kind == "lua" then t.contains(palette, "LUA = " .. i - 1, "kind of Lua") end
  if kind == "compiled" then
    t.contains(palette, "COMPILED = " .. i - 1, "kind of compiled Lua")
  end
end

-- Its trees show a function once, and how much of it was compiled; run where
-- there is a JavaScript of the shell.
local TREES = [=[
const flat = %s, names = trees.readNames(%s, %s, 1), shaped = trees.parse(flat, false);
function show(t) {
  const out = [], todo = t.kids(0).slice().reverse();
  while (todo.length) {
    const i = todo.pop();
    out.push("-".repeat(t.depth[i]) + names.texts[t.name[i]] + " " + t.self[i] + "/" +
             t.total[i] + "/" + t.compiled[i]);
    todo.push(...t.kids(i).slice().reverse());
  }
  console.log(out.join("\n"));
}
show(trees.forward(shaped, names, false));
show(reversed.make(shaped, names));
]=]
if t.shell("command -v node") == 0 then
  local function list(name) return page:match('"' .. name .. '":(%[.-%])') end
  t.write_file("trees.js", t.read_file(SCRIPTS .. "trees.js") ..
	       t.read_file(SCRIPTS .. "reversed.js") .. TREES:format(list("nodes"), list("names"), list("kinds")))
  local status, out, err = t.shell("node trees.js")
  t.equal(status, 0, "script: " .. err)
  t.equal(out, [[
-main 0/10/0
--a (x:1) 0/10/0
---b (x:2) 7/10/6
----b (x:2) 1/3/3
-----cf 2/2/0
-b (x:2) 0/8/4
--a (x:1) 0/7/0
---main 7/7/0
--b (x:2) 0/1/1
---a (x:1) 0/1/0
----main 1/1/0
-cf 0/2/0
--b (x:2) 0/2/2
---b (x:2) 0/2/2
----a (x:1) 0/2/0
-----main 2/2/0
]], "trees of the page")
end

t.finish()
