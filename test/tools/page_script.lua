-- The script of the flame graph's page: its trees are the folded stacks again, root first and leaf first,
-- with hidden frames, folded calls and searches. Node runs it, if it is installed.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local made = require("made_profile")
local text = require("sysprof.base.text")
local F = B.F

if t.shell("node --version") ~= 0 then
  print("Node is not installed: the script of the page was not run")
  os.exit(77)
end

-- Prints each tree as folded stacks with self, the second value and what is gone. Checks that
-- totals are sums, and that a search finds each matching node once.
local DRIVER = [=[
const [, , dataFile, spec] = process.argv, { hidden, folded, query, range } = JSON.parse(spec);
const data = JSON.parse(require("fs").readFileSync(dataFile, "utf8"));
const names = trees.readNames(data.names, data.kinds, 1);
const flags = Uint8Array.from(data.names, name => hidden.includes(name) ? 1 : 0);
const ready = data.states ? names.number.get("[runnable]") : -1;
const whole = trees.parse(data.nodes, data.diff || data.states, ready);
const fill = (self, off) => columns.parse(data.columns.texts)(self, off, ...range);
const shown = range ? trees.refill(whole, ready, fill) : whole;
const shaped = trees.shape(shown, names,
                           hidden.length ? flags : null, folded);
const forward = trees.forward(shaped, names, data.diff), out = {};

function check(what, is) { if (!is) throw new Error(what); }

function walk(tree) {
  const lines = [], order = [], todo = [0];
  while (todo.length) {
    const i = todo.pop(), kids = tree.kids(i), path = trees.pathOf(tree, i);
    const sums = { total: tree.self[i], compiled: 0 };
    order.push(i);
    kids.forEach((c, k) => {
      check("parent", tree.parent[c] === i && tree.depth[c] === tree.depth[i] + 1);
      check("names", !k || data.names[tree.name[kids[k - 1]]] < data.names[tree.name[c]]);
      check("compiled", tree.compiled[c] <= tree.total[c]);
      sums.total += tree.total[c];
    });
    check("total", sums.total === tree.total[i]);
    check("find", trees.find(tree, path) === i);
    const other = tree.other ? tree.other[i] : 0;
    if (tree.self[i] || other)
      lines.push([path.map(name => data.names[name]), tree.self[i], other, data.diff ? tree.gone[i] : 0]);
    for (let k = kids.length - 1; k >= 0; k--) todo.push(kids[k]);
  }
  return [lines, order];
}

// Every node can be reached by going to the hottest and from there sideways.
function checkNeighbours(tree, order) {
  const size = i => tree.total[i], at = (node, where) => trees.neighbour(tree, node, where, size);
  check("root", at(0, "caller") === -1 && at(0, "before") === -1);
  for (const i of order) {
    if (!i || !tree.total[i]) continue;
    let hot = at(at(i, "caller"), "callee");
    check("hottest", tree.total[hot] >= tree.total[i]);
    const place = i => order.indexOf(i);
    while (place(hot) < place(i)) hot = at(hot, "after");
    while (place(hot) > place(i)) hot = at(hot, "before");
    check("neighbour", hot === i);
  }
}

// which: a tree that has no kids yet, too.
function checkSearch(tree, order) {
  const test = searching.matcher(query);
  const hits = Uint8Array.from(data.names, name => test(name) ? 1 : 0);
  const expected = order.filter(i => i && hits[tree.name[i]]);
  const marks = tree.mark(hits);
  check("count", marks.count === expected.length);
  const step = searching.stepper(tree, hits, marks, () => 1), back = searching.stepper(tree, hits, marks, () => 1);
  for (let round = 0; round < 2; round++)
    expected.forEach((i, k) => check("step", step(1).join() === [i, k + 1].join()));
  if (expected.length) check("back", back(-1)[0] === expected[expected.length - 1]);
  else check("nothing", step(1) === null && back(-1) === null);
  return expected.length;
}

for (const [which, make] of [["forward", () => forward], ["reversed", () => reversed.make(shaped, names)]]) {
  const tree = make(), [lines, order] = walk(tree);
  out[which] = lines;
  checkNeighbours(tree, order);
  if (query) {
    out[which + "Matches"] = checkSearch(tree, order);
    // Without any node made before: the same matches.
    const hits = Uint8Array.from(data.names, name => searching.matcher(query)(name) ? 1 : 0);
    const fresh = make(), marks = fresh.mark(hits), step = searching.stepper(fresh, hits, marks, () => 1);
    let n = 0;
    for (let found = step(1); found && found[1] === n + 1; found = step(1)) n++;
    check("fresh", n === out[which + "Matches"] && n === marks.count);
    out.within = forward.within(hits);
  }
}
console.log(JSON.stringify(out));
]=]

local PAGE, SCRIPTS = t.source .. "/tools/sysprof/formats/page/", {}
for _, name in ipairs { "trees", "reversed", "search", "link", "columns" } do
  SCRIPTS[#SCRIPTS + 1] = t.read_file(PAGE .. name .. ".js")
end

-- spec: hidden (a list of names), folded and query, all off if missing. Returns what the driver
-- printed.
local function run(page, spec)
  local hidden = {}
  for i, name in ipairs(spec and spec.hidden or {}) do hidden[i] = text.json(name) end
  t.write_file("script.js", table.concat(SCRIPTS) .. DRIVER)
  t.write_file("data.json", page:match('id="data">\n(.-)\n</script>'))
  local range = spec and spec.range and ("[%.0f,%.0f]"):format(unpack(spec.range)) or "null"
  t.write_file("spec.json", ('{"hidden":[%s],"folded":%s,"query":%s,"range":%s}'):format(table.concat(hidden, ","),
    tostring(spec and spec.folded or false), text.json(spec and spec.query or ""), range))
  local status, out, err = t.shell('node script.js data.json "$(cat spec.json)"')
  t.equal(status, 0, "node: " .. err)
  return json.decode(out)
end

-- Returns sums by stack as folded stacks.
local function folded_text(sums)
  local list = {}
  for stack in pairs(sums) do list[#list + 1] = stack end
  table.sort(list)
  for i, stack in ipairs(list) do list[i] = ("%s %.0f\n"):format(stack, sums[stack]) end
  return table.concat(list)
end

-- which: place of the value in a line.
local function folded(lines, reverse, which)
  local sums = {}
  for _, line in ipairs(lines) do
    local names = {}
    for i, name in ipairs(line[1]) do
      table.insert(names, reverse and 1 or i, text.folded(name))
    end
    local stack = table.concat(names, ";")
    if line[which or 2] > 0 then sums[stack] = (sums[stack] or 0) + line[which or 2] end
  end
  return folded_text(sums)
end

local stream = made.stream()
for _, options in ipairs { {}, { weight = "cpu" }, { no_host = true } } do
  local shown = run((t.render(stream, "flamegraph", options)))
  local expected = t.render(stream, "folded", options)
  t.equal(folded(shown.forward), expected, "forward")
  t.equal(folded(shown.reversed, true), expected, "reversed")
end

-- -- Hidden frames, folded calls, searches ----------------------------------

-- Calls change(names) with the names of each folded stack, which it may change.
local function changed(stacks, change)
  local sums = {}
  for stack, value in stacks:gmatch("(.-) (%d+)\n") do
    local names = {}
    for name in stack:gmatch("[^;]+") do names[#names + 1] = name end
    change(names)
    stack = table.concat(names, ";")
    sums[stack] = (sums[stack] or 0) + value
  end
  return sums
end

local function without(names, hidden)
  for i = #names, 1, -1 do
    if names[i] == hidden then table.remove(names, i) end
  end
end

-- Whether the last n names are those before them.
local function repeats(names, n)
  for i = 0, n - 1 do
    if names[#names - i] ~= names[#names - n - i] then return false end
  end
  return #names >= 2 * n
end

local function without_repeats(names)
  local kept = {}
  for i, name in ipairs(names) do
    kept[#kept + 1] = name
    for n = 1, 8 do
      if repeats(kept, n) then
	for _ = 1, n do kept[#kept] = nil end
	break
      end
    end
    names[i] = nil
  end
  for i, name in ipairs(kept) do names[i] = name end
end

-- Recursion of all kinds: three functions, one of them compiled at times.
local b, state = B.new():context(), 1
local function random(n)
  state = state * 16807 % 2147483647
  return 1 + state % n
end
for fid = 1, 3 do b:lfunc(fid, fid, "@x", "f" .. fid) end
for id = 1, 300 do
  local list, depth = { F.cbound }, random(14)
  for _ = 1, depth do list[#list + 1] = F.lfunc(random(3)) end
  if random(2) == 1 then table.insert(list, 1 + random(depth), F.trace(1, 1)) end
  b:stack(id, list):sample(id, 0, random(5))
end
stream = b:finish()
local page = t.render(stream, "flamegraph")
local HIDDEN = "f2 (x:2)"
local plain = t.render(stream)
for _, case in ipairs { { "nothing", {}, function() end },
			{ "hidden", { hidden = { HIDDEN } }, function(names) without(names, HIDDEN) end },
			{ "folded", { folded = true }, without_repeats },
			{ "both", { hidden = { HIDDEN }, folded = true }, function(names)
			  without(names, HIDDEN)
			  without_repeats(names)
			end } } do
  case[2].query = "f3 "
  local sums, seen, matches, within = changed(plain, case[3]), {}, { 0, 0 }, 0
  for stack, value in pairs(sums) do
    local names, at, back = {}, "", ""
    for name in stack:gmatch("[^;]+") do names[#names + 1] = name end
    for i = 1, #names do
      at, back = at .. ";" .. names[i], back .. "<" .. names[#names + 1 - i]
      for k, path in ipairs { at, back } do
	local is_match = (k == 1 and names[i] or names[#names + 1 - i]):find("f3 ", 1, true)
	if is_match and not seen[path] then matches[k] = matches[k] + 1 end
	seen[path] = true
      end
    end
    if stack:find("f3 ", 1, true) then within = within + value end
  end
  local shown = run(page, case[2])
  t.equal(folded(shown.forward), folded_text(sums), case[1] .. ", forward")
  t.equal(folded(shown.reversed, true), folded_text(sums), case[1] .. ", reversed")
  t.equal(shown.forwardMatches, matches[1], case[1] .. ", matches")
  t.equal(shown.reversedMatches, matches[2], case[1] .. ", matches, reversed")
  t.equal(shown.within, within, case[1] .. ", value of the matches")
  t.ok(matches[1] > 2, case[1] .. ": there are matches")
end
t.equal(run(page, { query = "nothing" }).forwardMatches, 0, "no match")

-- -- A comparison ------------------------------------------------------------

local reader, view = require("sysprof.read.reader"), require("sysprof.show.view")

local function compared(after, before)
  local v = view.new(reader.parse_string(after))
  v:compare_with(view.new(reader.parse_string(before)))
  local out = {}
  require("sysprof.formats.flamegraph").render(v, function(s) out[#out + 1] = s end)
  return run(table.concat(out))
end

local trees = compared(stream, stream)
for which, lines in pairs(trees) do
  if which == "forward" or which == "reversed" then
    t.ok(#lines > 50, "stacks of a comparison")
    for _, line in ipairs(lines) do
      t.equal(line[2], line[3], "the base of a stack")
      t.equal(line[4], 0, "nothing is gone")
    end
  end
end

-- a;b is gone, a;c is new; a has the rest.
local function three(first, second, third)
  local made_of = B.new():context()
  for fid, name in ipairs { "a", "b", "c" } do made_of:lfunc(fid, fid, "@x", name) end
  made_of:stack(1, { F.cbound, F.lfunc(1) }):stack(2, { F.cbound, F.lfunc(1), F.lfunc(2) })
	 :stack(3, { F.cbound, F.lfunc(1), F.lfunc(3) })
  for id, n in ipairs { first, second, third } do made_of:sample(id, 0, n) end
  return made_of:finish()
end
trees = compared(three(6, 0, 4), three(5, 5, 0))
local function lines_of(lines)
  local out = {}
  for i, line in ipairs(lines) do
    out[i] = ("%s %g %g %g"):format(table.concat(line[1], ";"), line[2], line[3], line[4])
  end
  return table.concat(out, "\n")
end
t.equal(lines_of(trees.forward), "a (x:1) 6 5 5\na (x:1);b (x:2) 0 5 5\na (x:1);c (x:3) 4 0 0", "gone and new")
t.equal(lines_of(trees.reversed), "a (x:1) 6 5 0\nb (x:2);a (x:1) 0 5 5\nc (x:3);a (x:1) 4 0 0",
	"gone and new, reversed")

-- The second value of real time is the part off CPU.
stream = made.stream(1, true)
trees = run((t.render(stream, "flamegraph", {})))
t.equal(folded(trees.forward), t.render(stream, "folded", {}), "real time, forward")
local off = t.render(stream, "folded", { event = "offcpu" })
t.ok(#off > 1000, "there are waits")
t.equal(folded(trees.forward, false, 3), off, "off CPU, forward")
t.equal(folded(trees.reversed, true, 3), off, "off CPU, reversed")

-- -- A part of the time ------------------------------------------------------

local limits = require("sysprof.base.limits")

-- Returns a view of a stream's samples from a time to another one, in microseconds.
local function part_of(bytes, from, to, options, has_activity)
  local p = assert(reader.parse_string(bytes, { from = from, to = to, activity = has_activity }))
  return assert(view.new(p, options))
end

local function render(v, format)
  local parts = {}
  require("sysprof.formats." .. format).render(v, function(s) parts[#parts + 1] = s end)
  return table.concat(parts)
end

-- Returns how many ranges had samples, and the step. A stream of two sessions is read as one profile.
local function check_ranges(bytes, options, what)
  local shown_page, found = render(part_of(bytes, nil, nil, options, true), "flamegraph"), 0
  local step, count = shown_page:match('"columns":{"step":(%d+),"count":(%d+),')
  step, count = tonumber(step), tonumber(count)
  for _, share in ipairs { { 0, 1 }, { 0, 0.3 }, { 0.3, 0.7 }, { 0.5, 0.55 }, { 0.9, 1 } } do
    local from, to = math.floor(share[1] * count), math.ceil(share[2] * count)
    local folded_part = render(part_of(bytes, from * step, to * step, options), "folded")
    local ranged = run(shown_page, { range = { from, to } })
    local its = ("%s, columns %d to %d"):format(what, from, to)
    t.equal(folded(ranged.forward), folded_part, its .. ", forward")
    t.equal(folded(ranged.reversed, true), folded_part, its .. ", reversed")
    local off_part = render(part_of(bytes, from * step, to * step, { event = "offcpu" }), "folded")
    t.equal(folded(ranged.forward, false, 3), off_part, its .. ", off CPU")
    if #folded_part > 0 then found = found + 1 end
  end
  return found, step
end

local found, step_us = check_ranges(stream, {}, "real time")
t.ok(found >= 3, "ranges with samples")
t.equal(step_us, 20000, "a column")
t.ok(not render(part_of(stream, nil, nil, { weight = "samples" }, true), "flamegraph"):find('"columns"', 1, true),
     "a wait that several columns share is a sample of each, so the page adds up no samples")
check_ranges(stream .. made.stream(2, true), {}, "two sessions")

-- Few stacks for a long time.
local function long_stream()
  local long = B.new():context(7, 0):meta("clock", "cpu,offcpu"):meta("wall", "cpu,offcpu"):meta("pid", "7")
  long:event(0, "ctimer", G.SPF_UNIT_US, 10000000):event(1, "switch-records", G.SPF_UNIT_NS, 0)
  for fid = 1, 4 do long:lfunc(fid, fid, "@x", "f" .. fid) end
  for id = 1, 8 do
    long:stack(id, { F.cbound, F.lfunc(random(4)), id < 8 and F.lfunc(random(4)) or F.work(G.SPF_WORK_READY) })
  end
  for turn = 1, 400 do
    local id = random(8)
    long:context(6 + random(2), turn * 25000):sample(id, 0, 1, nil, random(9000), id < 6 and 0 or 1)
  end
  return long:finish()
end

local long, cells = long_stream(), limits.CELLS
limits.CELLS = 100
found, step_us = check_ranges(long, {}, "long columns")
t.ok(found >= 3 and step_us > 20000, "longer columns: " .. step_us)
check_ranges(long .. long_stream(), {}, "long columns of two sessions")
limits.CELLS = cells
local values = limits.COLUMN_VALUES
limits.COLUMN_VALUES = 100
found, step_us = check_ranges(long .. long_stream(), {}, "few values")
t.ok(found >= 3 and step_us > 20000, "longer columns in the page: " .. step_us)
limits.COLUMN_VALUES = values
-- Many long waits in few bytes: columns get longer before they take much time. Ranges keep their sums.
do
  local spans = B.new():context(7, 0):meta("clock", "cpu,offcpu"):meta("wall", "cpu,offcpu"):meta("pid", "7")
  spans:event(0, "ctimer", G.SPF_UNIT_US, 10000000):event(1, "switch-records", G.SPF_UNIT_NS, 0):lfunc(1, 1, "@x", "f")
  for id = 1, 2 do spans:stack(id, { F.cbound, F.lfunc(1, id), F.work(G.SPF_WORK_WAIT, id) }) end
  spans:context(7, 1022 * 20000)
  for i = 1, 4000 do spans:sample(1 + i % 2, 0, 1, nil, 20400000 * 1000, 1) end
  local bytes = spans:finish()
  local its = part_of(bytes, nil, nil, {}, true).profile.columns
  t.ok(its.span < 1024 and its.step_us > 20000, ("waits of many columns: %d of %d us"):format(its.span, its.step_us))
  t.ok(its.n < 4000 * 1024 * 3 / 4, "waits of many columns: cells " .. its.n)
  check_ranges(bytes, {}, "waits of many columns")
end

-- Without room for one column the page has none.
limits.CELLS = 2
t.equal(render(part_of(stream, nil, nil, {}, true), "flamegraph"):find('"columns"', 1, true), nil, "no room for columns")
limits.CELLS = cells
t.equal(render(part_of(stream, nil, nil, { event = "cpu" }, true), "flamegraph"):find('"columns"', 1, true), nil,
	"a page without threads has no columns")

-- -- The address -------------------------------------------------------------

local LINKS_DRIVER = [=[
const names = trees.readNames(["a", "b&c=<d>", "a", "#é"], [0, 0, 1, 3], 1), out = {};
function check(what, is) { if (!is) throw new Error(what); }
const states = [
  {}, { query: "/x+#&=é/" }, { zoom: [0, 1, 3], reverse: true }, { hidden: [1, 3], fold: true },
  { icicle: true, kinds: true, now: true, query: " " }, { range: [420000, 580000] }, { range: [0, 1e12] }
];
for (const change of states) {
  const state = { ...links.WHOLE, ...change };
  const text = links.encode(state, names);
  check("same: " + text, JSON.stringify(links.decode(text, names)) === JSON.stringify(state));
  check("characters: " + text, /^[\w.%+=&*-]*$/.test(text));
}
check("empty", links.encode(links.WHOLE, names) === "");
// Anything else is left out.
const hostile = [
  "z=1.2.3", "z=0.1&zn=a", "z=9&zn=a", "z=__proto__&zn=a", "z=-1&zn=a", "z=1e9&zn=a", "z=" + "0.".repeat(3000) + "0&zn=a",
  "h=nothing&h=__proto__&h=constructor", "r=true&i=2&k=&f=yes", "%", "%zz=%", "&&&===", "x".repeat(1e6),
  "__proto__=1&constructor=1", "q", "zn=a", "from=2&to=1", "from=-1&to=2", "from=1e1&to=1e2", "from=1", "to=1", "from=&to=1",
  "from=1&to=99999999999", "from=1&to=2.1234567", "from=NaN&to=Infinity"
];
for (const text of hostile)
  check("hostile: " + text.slice(0, 99), JSON.stringify(links.decode(text, names)) === JSON.stringify(links.WHOLE));
check("long", links.decode("q=" + "x".repeat(9000), names).query.length === 1000);
check("hidden twice", links.decode("h=a&h=a", names).hidden.join() === "0");
// Regular expressions that may take long do not run by themselves.
const long = ["a".repeat(60)];
for (const query of ["/(a+)+$/", "/(a|a)*b/", "/(a?){50}a{50}/", "/.*.*.*.*.*.*x/", "/(a*)\\1b/", "/(?:a+){9}/", "/a?a?a?a?a?a?a?a?a?a?b/"])
  check("costly: " + query, searching.isCostly(query, long));
for (const query of ["a", "(a+)+", "/^a+/", "/foo|bar.*/", "/\\.lua:\\d+/"])
  check("cheap: " + query, !searching.isCostly(query, long));
console.log("done");
]=]
t.write_file("links.js", table.concat(SCRIPTS) .. LINKS_DRIVER)
local linked, link_out, link_err = t.shell("node links.js")
t.equal(linked, 0, "node: " .. link_err)
t.equal(link_out, "done\n", "links")

-- -- Threads over time -----------------------------------------------------

-- Draws the rows on a canvas of 1024 pixels for 1024 steps, beside the names. Prints the height of each colour in each
-- step of the first row, and what the tooltip says in the middle.
local THREADS_DRIVER = [=[
const data = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8")).threads;
const rects = [], handlers = {};
const ctx = { setTransform() {}, fillText() {},
	      fillRect(x, y, w, h) { rects.push([this.fillStyle, x, y, w, h]); } };
const element = { clientWidth: 170 + data.list[0].shares.length / 3, style: {}, getContext: () => ctx,
  addEventListener: (name, f) => { handlers[name] = f; }, getBoundingClientRect: () => ({ left: 0, top: 0 }) };
const document = { getElementById: () => element };
const matchMedia = () => ({ matches: false, addEventListener() {} });
const addEventListener = () => {}, devicePixelRatio = 1;
PALETTE
THREADS
let tip;
threads.show(data, texts => { tip = texts; });
const names = [["on CPU", palette.ON], ["runnable", palette.RUNNABLE], ["waiting", palette.OFF]], steps = [];
for (const [colour, x, y, w, h] of rects) {
  const name = names.find(([, kind]) => palette.plain(kind) === colour);
  if (!name || y >= 22) continue;
  if (w !== 1 || y < 6 || y + h > 20.001) throw new Error("a box outside of its row");
  const step = steps[x - 170] || (steps[x - 170] = {});
  step[name[0]] = h;
}
handlers.mousemove({ clientX: 170 + steps.length / 2, clientY: 13 });
console.log(JSON.stringify({ steps, tip, rows: data.list.length }));
]=]

local v2 = view.new(assert(reader.parse_string(stream, { activity = true })))
local out = {}
require("sysprof.formats.flamegraph").render(v2, function(s) out[#out + 1] = s end)
page = table.concat(out)
t.write_file("data.json", page:match('id="data">\n(.-)\n</script>'))
local palette, threads = t.read_file(PAGE .. "palette.js"), t.read_file(PAGE .. "threads.js")
t.write_file("threads.js", (THREADS_DRIVER:gsub("PALETTE", function() return palette end)
			     :gsub("THREADS", function() return threads end)))
local status, drawn, err = t.shell("node threads.js data.json")
t.equal(status, 0, "node: " .. err)
drawn = json.decode(drawn)
local shares = json.decode(page:match('id="data">\n(.-)\n</script>')).threads.list[1].shares
local wrong = 0
for i, step in ipairs(drawn.steps) do
  local on, waiting, runnable = shares[3 * i - 2], shares[3 * i - 1], shares[3 * i]
  -- 14 pixels, filled from the bottom.
  local function is(name, percent) return math.abs((step[name] or 0) - 0.14 * percent) < 0.01 end
  if not (is("on CPU", math.min(on, 100)) and is("runnable", math.min(runnable, 100 - on)) and
	  is("waiting", math.max(math.min(waiting, 100 - on - runnable), 0))) then
    wrong = wrong + 1
  end
end
t.equal(wrong, 0, "steps whose boxes are not their shares")
t.equal(#drawn.steps, #shares / 3, "steps that are drawn")
t.ok(drawn.rows >= 1 and #drawn.tip == 3 and #drawn.tip[3] == 3, "tooltip")

t.finish()
