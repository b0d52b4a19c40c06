-- A comparison finds each function of a program again after an edit, as a person would.
-- LONG: 25

local t = require("tools_test")
local reader = require("sysprof.read.reader")
local samefuncs = require("sysprof.model.samefuncs")
local view = require("sysprof.show.view")

local SECONDS = 0.25	-- Of a run: some 2,500 samples of 30 functions.
local FILE = "app.lua"
local PROGRAM = t.read_file(t.source .. "/test/lib/programs/edited_program.lua")

-- -- Sources -------------------------------------------------------------------

-- Returns a source with one text in place of another, which it must have once.
local function replace(source, from, to)
  local first, last = source:find(from, 1, true)
  assert(first and not source:find(from, last + 1, true), "once in the source: " .. from)
  return source:sub(1, first - 1) .. to .. source:sub(last + 1)
end

-- Returns where a function begins and ends, by its tag; it stands at the beginning of a line.
local function place_of(source, tag)
  local at = assert(source:find("--#" .. tag .. "\n", 1, true), tag)
  local first = at
  while first > 1 and source:sub(first - 1, first - 1) ~= "\n" do first = first - 1 end
  local indent = source:match("^ *", first)
  local _, last = source:find("\n" .. indent .. "end%)?\n", at)
  return first, last
end

-- Takes functions out; returns the rest and their texts.
local function cut(source, ...)
  local texts = {}
  for i, tag in ipairs { ... } do
    local first, last = place_of(source, tag)
    texts[i] = source:sub(first, last)
    source = source:sub(1, first - 1) .. source:sub(last + 1)
  end
  return source, table.concat(texts, "\n")
end

-- Puts a text above or below a function.
local function above(source, tag, text)
  local first = place_of(source, tag)
  return source:sub(1, first - 1) .. text .. source:sub(first)
end

local function below(source, tag, text)
  local _, last = place_of(source, tag)
  return source:sub(1, last) .. "\n" .. text .. source:sub(last + 1)
end

local function in_app(edit)
  return function(app) return { [FILE] = edit(app) } end
end

-- Moves the functions of a section into a file of their own, which gives them back.
local function split(file, names, ...)
  local tags = { ... }
  return function(app)
    local rest, text = cut(app, unpack(tags))
    local list = table.concat(names, ", ")
    return { [file] = text .. "\nreturn " .. list .. "\n",
	     [FILE] = replace(rest, "local M = {}\n", ("local M = {}\nlocal %s = dofile('%s')\n"):format(list, file)) }
  end
end

local function comments(n) return ("-- A comment.\n"):rep(n) end

local OTHER = "local function other(n) --#other\n  local s = 1\n  for i = 1, n do s = s * i % 1009 end\n  return s\nend\n\n"

local function rename(source, from, to)
  return (source:gsub("%f[%w_]" .. from .. "%f[^%w_#]", to):gsub("#" .. to .. "\n", "#" .. from .. "\n"))
end

-- Name of an edit; edit(app) returns the files by name, and the name of the program if it is another; tags of functions
-- that nobody can find again.
local EDITS = {
  { "nothing", in_app(function(app) return app end) },
  { "comment above all", in_app(function(app) return comments(1) .. app end) },
  { "forty lines above all", in_app(function(app) return comments(40) .. app end) },
  { "comment in the middle", in_app(function(app) return above(app, "tokens_of", comments(3)) end) },
  { "comment in a loop", in_app(function(app)
    return replace(app, "      count = count + 1\n", "      -- A prime.\n      count = count + 1\n")
  end) },
  { "comment in each function", in_app(function(app) return (app:gsub("(%-%-#[%w_]+\n)", "%1  -- A comment.\n")) end) },
  { "function added above", in_app(function(app) return above(app, "sieve", OTHER) end) },
  { "function added and called", in_app(function(app)
    return replace(above(app, "collatz", OTHER), "    sieve(20000)\n", "    sieve(20000)\n    other(90000)\n")
  end) },
  { "function removed", in_app(function(app) return replace(cut(app, "collatz"), "    collatz(1500)\n", "") end) },
  { "function moved down", in_app(function(app)
    local rest, text = cut(app, "sieve")
    return above(rest, "count_pairs", text .. "\n")
  end) },
  { "function moved up", in_app(function(app)
    local rest, text = cut(app, "count_pairs")
    return above(rest, "sieve", text .. "\n")
  end) },
  { "two functions exchanged", in_app(function(app)
    local rest, text = cut(app, "new_matrix")
    return below(rest, "multiply", text)
  end) },
  { "section moved", in_app(function(app)
    local rest, text = cut(app, "sieve", "gcd", "gcd_sum", "collatz")
    return above(rest, "insertion_sort", text .. "\n")
  end) },
  { "local function renamed", in_app(function(app) return rename(app, "checksum", "adler") end) },
  { "method renamed", in_app(function(app)
    return (app:gsub("Stack:push", "Stack:add"):gsub("stack:push", "stack:add"))
  end) },
  { "field renamed", in_app(function(app) return (app:gsub("M%.calculate", "M.evaluate")) end) },
  { "recursive function renamed", in_app(function(app) return rename(app, "encode", "write_value") end) },
  { "renamed and moved", in_app(function(app)
    local rest, text = cut(app, "gcd")
    rest = replace(rest, "local M = {}\n", "local M = {}\n\n" .. text)
    return rename(rest, "gcd", "common_divisor")
  end) },
  { "three renamed", in_app(function(app)
    return rename(rename(rename(app, "sieve", "primes"), "multiply", "product"), "tokens_of", "lex")
  end) },
  { "argument added", in_app(function(app)
    app = replace(app, "checksum(text) --", "checksum(text, start) --")
    return replace(replace(app, "local a, b = 1, 0\n", "local a, b = start, 0\n"), "checksum(text) end", "checksum(text, 1) end")
  end) },
  { "argument added to a method", in_app(function(app)
    return replace(app, "Stack:push(item)", "Stack:push(item, more)")
  end) },
  { "loop rewritten", in_app(function(app)
    return replace(app, "  for i = 1, #text do\n    a = (a + text:byte(i)) % 65521\n    b = (b + a) % 65521\n  end\n",
		   "  local i = 1\n  while i <= #text do\n    a = (a + text:byte(i)) % 65521\n" ..
		   "    b = (b + a) % 65521\n    i = i + 1\n  end\n")
  end) },
  { "loop rewritten, lines above", in_app(function(app)
    app = replace(app, "  while b ~= 0 do\n    a, b = b, a % b\n  end\n",
		  "  repeat\n    local rest = a % b\n    a, b = b, rest\n  until b == 0\n")
    return comments(9) .. app
  end) },
  { "callback rewritten", in_app(function(app)
    return replace(app, "      return a > b\n", "      local more = a > b\n      return more\n")
  end) },
  { "callback added before others", in_app(function(app)
    return replace(app, "    insertion_sort(list, function(a, b) --#ascending\n",
		   "    insertion_sort(list, function(a, b) --#by_digit\n      return a % 10 < b % 10\n    end)\n" ..
		   "    insertion_sort(list, function(a, b) --#ascending\n")
  end) },
  { "callbacks exchanged", in_app(function(app)
    app = replace(replace(app, "#ascending\n      return a < b", "#x\n      return a > b"),
		  "#descending\n      return a > b", "#ascending\n      return a < b")
    return replace(app, "#x\n", "#descending\n")
  end) },
  { "file split", split("numbers.lua", { "sieve", "gcd_sum", "collatz" }, "sieve", "gcd", "gcd_sum", "collatz") },
  { "file split, a function changed", function(app)
    app = replace(app, "      count = count + 1\n", "      count = count + 2\n")
    return split("numbers.lua", { "sieve", "gcd_sum", "collatz" }, "sieve", "gcd", "gcd_sum", "collatz")(app)
  end },
  { "file renamed", function(app) return { ["main.lua"] = app }, "main.lua" end },
  { "file renamed and edited", function(app)
    app = replace(rename(app, "sieve", "primes"), "      count = count + 1\n", "      count = count + 3\n")
    return { ["main.lua"] = comments(5) .. app }, "main.lua"
  end, { sieve = true } },	-- Another name and another body.
  { "file moved to a folder", function(app) return { ["src/app.lua"] = app }, "src/app.lua" end },
  { "file moved to a folder and edited", function(app)
    return { ["src/app.lua"] = OTHER .. "other(9)\n" .. rename(app, "sieve", "primes") }, "src/app.lua"
  end },
  { "another file put above", function(app)
    return { [FILE] = OTHER .. "other(9)\n" .. comments(7) .. app }
  end },
}

-- -- Runs ------------------------------------------------------------------------

-- Runs a program of several files in a folder of its own. Returns its profile.
local function run(files, n, program)
  local dir = ("run%d"):format(n)
  assert(t.shell("mkdir -p " .. dir .. "/src") == 0)
  for name, text in pairs(files) do t.write_file(dir .. "/" .. name, text) end
  local status, out, err = t.shell(("cd %s && LUAJIT_SYSPROF='path=profile.bin,hz=10000' '%s' %s %g")
				   :format(dir, t.luajit, program or FILE, SECONDS))
  t.equal(status, 0, "the program runs: " .. out .. err)
  return dir .. "/profile.bin"
end

-- Returns the tags of a program's definitions by file and line: the truth.
local function tags_of(files)
  local tags = {}
  for name, text in pairs(files) do
    local line = 0
    tags[name .. ":0"] = "main of " .. (files[FILE] and name or FILE)
    for s in text:gmatch("([^\n]*)\n") do
      line = line + 1
      tags[name .. ":" .. line] = s:match("%-%-#([%w_]+)$")
    end
  end
  return tags
end

local function tag_of(tags, f)
  return tags[f.chunk:sub(2) .. ":" .. ("%.0f"):format(f.firstline)]
end

-- Compares two profiles; returns what became of the functions, and the sentences on those that are wrong.
local function judge(before, tags, after, new_tags, may_miss)
  local counts = samefuncs.match(before, after)
  local has, wrong, right = {}, {}, 0
  for _, f in after.lfuncs:each() do
    local tag = tag_of(new_tags, f)
    if tag then has[tag] = true end
  end
  for _, f in before.lfuncs:each() do
    local tag = tag_of(tags, f)
    local found = f.as and tag_of(new_tags, f.as)
    if tag and found ~= (has[tag] and tag or nil) and not (may_miss and may_miss[tag] and not found) then
      wrong[#wrong + 1] = ("%s is %s"):format(tag, found or "gone")
    elseif tag then
      right = right + 1
    end
  end
  return counts, right, wrong
end

local files = { [FILE] = PROGRAM }
local tags, older = tags_of(files), run(files, 0)
print(("%-30s %9s %5s %7s %7s %5s %7s"):format("edit", "functions", "right", "changed", "renamed", "moved", "shifted"))
for i, edit in ipairs(EDITS) do
  local what, change, may_miss = unpack(edit, 1, 3)
  local edited, program = change(PROGRAM)
  local before, after = assert(reader.read(older)), assert(reader.read(run(edited, i, program)))
  local counts, right, wrong = judge(before, tags, after, tags_of(edited), may_miss)
  print(("%-30s %9d %5d %7d %7d %5d %7d"):format(what, counts.pairs, right, counts.changed, counts.renamed, counts.moved,
						 counts.shifted))
  t.ok(right >= 25, what .. ": most functions are in the profile")
  t.equal(table.concat(wrong, ", "), "", what)
  t.equal(counts.hashless, 0, what .. ": each function has a hash")
  if i == 1 then
    t.equal(counts.changed + counts.renamed + counts.moved + counts.shifted, 0, "nothing is changed")
    local v = assert(view.new(after, { by = "lua" }))
    v:compare_with(assert(view.new(before, { by = "lua" })))
  end
end

t.finish()
