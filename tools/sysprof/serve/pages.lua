----------------------------------------------------------------------------
-- Pages of the server: where to begin, and what there is for other programs.
----------------------------------------------------------------------------

local text = require("sysprof.base.text")

local NAME_BYTES = 100	-- Bytes of a program's name.

local pages = {}

local HEAD = [[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sysprof for LuaJIT">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>%s</title>
<style>
:root { color-scheme: light dark; }
body {
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em;
}
h1 { font-size: 20px; }
li { overflow-wrap: anywhere; }
td { padding: 2px 1.5em 2px 0; vertical-align: top; }
td a { white-space: nowrap; }
td:last-child { padding-right: 0; }
</style>
</head>
<body>
]]

local function escaped(s)
  return text.html(text.short(s, NAME_BYTES))
end

local function head(title)
  return HEAD:format(title) .. ("<h1>%s</h1>\n"):format(title)
end

-- Rows of the start page: event, and what it shows.
local EVENTS = {
  { "cpu", "CPU time" }, { "wall", "CPU time and waits" }, { "offcpu", "waits" }, { "alloc", "allocations" },
}
local TIMES = { 5, 30 }

-- Returns the page of opened programs. problems: sentences on others; prefix: of the paths of links.
function pages.start(list, problems, prefix)
  local out = { head("sysprof for LuaJIT"), "<p>Programs:</p>\n<ul>\n" }
  for _, program in ipairs(list) do
    out[#out + 1] = ("<li>%s, PID %d</li>\n"):format(escaped(program.facts.program), program.pid)
  end
  for _, problem in ipairs(problems) do out[#out + 1] = ("<li>%s</li>\n"):format(text.html(text.clean(problem))) end
  out[#out + 1] = "</ul>\n<p>A link records, and then shows a flame graph:</p>\n<table>\n"
  for _, its in ipairs(EVENTS) do
    out[#out + 1] = ("<tr><td>%s</td>"):format(its[2])
    for _, seconds in ipairs(TIMES) do
      out[#out + 1] = ('<td><a href="%s/flame?event=%s&amp;seconds=%d">%d seconds</a></td>')
		      :format(prefix, its[1], seconds, seconds)
    end
    out[#out + 1] = "</tr>\n"
  end
  out[#out + 1] = ('</table>\n<p><a href="%s/debug/pprof/coroutine?debug=1">Coroutines now</a></p>\n' ..
		   '<p><a href="%s/debug/pprof/">For pprof and collectors</a></p>\n</body>\n</html>\n')
		  :format(prefix, prefix)
  return table.concat(out)
end

-- Rows of the index: path, what it is, and whether only programs have it.
local INDEX = {
  { "profile?seconds=30", "CPU time. <code>event=cpu,alloc</code> records other events, several at once" },
  { "allocs?seconds=10", "allocations" },
  { "heap?seconds=10", "allocations that still exist at the end" },
  { "block?seconds=10", "waits" },
  { "coroutine", "where all coroutines are now", true },
  { "coroutine?debug=1", "the same as text", true },
  { "cmdline", "command line of the program" },
}

-- Returns the index of what other programs may ask. prefix: of the paths of links.
function pages.index(is_live, prefix)
  local out = { head("/debug/pprof/"), "<table>\n" }
  for _, its in ipairs(INDEX) do
    local path, what = its[1], its[2]
    if not is_live then path, what = path:gsub("%?.*", ""), what:gsub("%..*", "") end
    if is_live or not its[3] then
      out[#out + 1] = ('<tr><td><a href="%s/debug/pprof/%s">%s</a></td><td>%s</td></tr>\n')
		      :format(prefix, path, path, what)
    end
  end
  out[#out + 1] = "</table>\n"
  out[#out + 1] = is_live and
    "<p>Nothing is recorded before a request: it records for its <code>seconds</code>, and answers with that time " ..
    "alone. Without <code>seconds</code> it takes the time above. One recording runs at a time; other requests " ..
    "wait.</p>\n" or "<p>The answers come from files: <code>seconds</code> changes nothing.</p>\n"
  out[#out + 1] = "</body>\n</html>\n"
  return table.concat(out)
end

return pages
