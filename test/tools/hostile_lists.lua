-- Lists of coroutines that a hostile program makes long: dump and serve need little time and memory, and the rest of the
-- list has a sentence.
-- TIMEOUT: 600
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local client = require("http_client")
local limits = require("sysprof.base.limits")
local pprof = require("pprof_decode")
local programs = require("live_programs")
local server = require("live_server")
local t = require("tools_test")

-- What it takes is far below. A table entry for each byte would need more.
local SECONDS = 30
local KIBYTES = (os.getenv("CFLAGS") or ""):find("sanitize") and "unlimited" or "400000"
local BOUNDED = ("ulimit -t %d; ulimit -v %s; "):format(SECONDS, KIBYTES)
local BYTES = limits.DUMP_BYTES - 100

os.execute("rm -rf ./*")

local pid = server.start("contents")

-- Returns a text of less than so many bytes: a beginning, repetitions, an end.
local function long(before, part, after)
  return before .. part:rep(math.floor((BYTES - #before - #(after or "")) / #part)) .. (after or "")
end

-- Dumps a list into a file; returns its content.
local function dump(list, format, what)
  t.write_file("live_server.list", list)
  local status, _, err = programs.try(("dump --force -o dump.%s %d"):format(format, pid), BOUNDED)
  t.equal(status, 0, what .. ": status: " .. err)
  t.equal(err, "", what .. ": messages")
  return t.content("dump." .. format)
end

for what, case in pairs {
  ["invalid bytes"] = { long("", "\255"), "\n    \\xff\\xff" }, ["lines of these"] = { long("", "\255\n"), "\n    \\xff\n" },
  ["escapes"] = { long("", "\27"), "\n    ??" }, ["heads"] = { long("", "1 coroutine of process 1:\n"), "\n1 coroutine at another moment:\n" },
} do
  local out = dump(case[1], "txt", what)
  t.ok(out:find(case[2], 1, true), what .. ": the list")
  t.ok(not out:find("unknown:", 1, true), what .. ": nothing is unknown")
end

for what, list in pairs {
  objects = long("", "{}\n"), numbers = long('{"a":[', "1,", "1]}"), strings = long('{"a":[', '"",', "1]}"),
  ["a long string"] = long('{"a":"', "\255", '"}'), ["escapes"] = long('{"a":"', "\\n", '"}'), keys = long("", '{"a":1}'),
} do
  local out = dump(list, "json", what)
  t.ok(out:find('"vms":[{', 1, true) and out:sub(-5) == "]}]}\n", what .. ": " .. out:sub(1, 200) .. out:sub(-50))
  t.ok(not out:find("coroutines_unknown", 1, true), what .. ": nothing is unknown")
end

do	-- All programs together have this much.
  local other = server.start("contents")
  t.write_file("live_server.list", ("x"):rep(limits.DUMP_BYTES / 2 + 1))
  local status, out = programs.try(("dump %d %d"):format(pid, other), BOUNDED)
  t.equal(status, 0, "two programs: status")
  t.equal(select(2, out:gsub("\n    xxx", "")), 1, "two programs: lists")
  t.contains(out, "coroutines unknown: their list: it has more than ", "two programs: why")
  server.stop { other }
end

-- -- serve -----------------------------------------------------------------

t.write_file("live_server.list", "main (a.lua:1);f (a.lua:2);[suspended] 3\n")
os.execute(("cat >bounded.sh <<'END'\n%s exec \"$@\"\nEND\n"):format(BOUNDED))
local served = client.serve(pid, nil, "sh bounded.sh")

-- Returns the answer for a list.
local function get(list, query, what)
  t.write_file("live_server.list", list)
  local status, _, body = client.get(served.port, "/debug/pprof/coroutine" .. query)
  t.equal(status, 200, what .. ": status: " .. body:sub(1, 200))
  return body
end

t.ok(get(long("", "\255"), "?debug=1", "serve: text"):find("\\xff\\xff", 1, true), "serve: text")
for what, case in pairs {
  ["different frames"] = { (function()
    local parts = {}
    for i = 1, limits.LIST_NAMES + 1 do parts[i] = ("f%d 1\n"):format(i) end
    return table.concat(parts)
  end)(), "LIST_NAMES", limits.LIST_NAMES },
  ["frames"] = { "f 1\n" .. ("f;"):rep(limits.LIST_FRAMES) .. " 1\n", "LIST_FRAMES", 1 },
} do
  local p = pprof.decode(get(case[1], "", "serve: " .. what))
  t.equal(#p.samples, case[3], "serve: " .. what .. ": samples")
  t.contains(table.concat(p.comments, "\n"), "missing: " .. limits.sentence(case[2]), "serve: " .. what)
  t.contains(t.content(served.log), limits.sentence(case[2]), "serve: " .. what .. ": note")
end
client.stop(served)

server.finish()
