-- The script of the flame graph's page: its trees are the folded stacks again, forward
-- and reversed. Node runs it, if it is installed.

local t = require("tools_test")
local json = require("json_decode")
local made = require("made_profile")
local text = require("sysprof.base.text")

if t.shell("node --version") ~= 0 then
  print("Node is not installed: the script of the page was not run")
  os.exit(77)
end

-- Prints each tree as folded stacks with self and the second value. Checks that totals are
-- sums, and that boxes lie within their callers.
local DRIVER = [=[
const data = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const first = new Map();
data.names.forEach((name, i) => { if (!first.has(name)) first.set(name, i); });
const profile = trees.read(data.nodes, data.names,
  data.kinds.map(kind => kind === 1 ? 1 : 0), data.names.map(name => first.get(name)), data.diff || data.states);
const out = {};
for (const which of ["forward", "reversed"]) {
  const tree = profile[which](), lines = [], path = [];
  for (let i = 0; i < tree.n; i++) {
    let sum = tree.self[i], left = tree.left[i];
    for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) {
      if (tree.parent[c] !== i || tree.left[c] !== left) throw new Error("tree");
      sum += tree.total[c];
      left += tree.total[c];
    }
    if (sum !== tree.total[i]) throw new Error("total");
    path.length = tree.depth[i];
    if (i) path[tree.depth[i] - 1] = data.names[tree.name[i]];
    if (tree.self[i] || tree.other[i]) {
      lines.push([path.slice(0, tree.depth[i]), tree.self[i], tree.other[i]]);
    }
  }
  out[which] = lines;
  // Every node can be reached by going to the hottest and from there sideways.
  const at = (node, where) => trees.neighbour(tree, node, where);
  if (at(0, "caller") !== -1 || at(0, "before") !== -1) throw new Error("root");
  let seen = 0;
  for (let i = 1; i < tree.n; i++) {
    if (!tree.total[i]) continue;
    let hot = at(at(i, "caller"), "callee");
    if (tree.total[hot] < tree.total[i]) throw new Error("hottest");
    while (hot < i) hot = at(hot, "after");
    while (hot > i) hot = at(hot, "before");
    if (hot !== i) throw new Error("neighbour");
    seen++;
  }
  if (seen < 20) throw new Error("nodes");
}
console.log(JSON.stringify(out));
]=]

local function run(page)
  t.write_file("script.js", page:match("<script>\n.-(const trees = .-\n%}%)%(%);)") .. "\n" .. DRIVER)
  t.write_file("data.json", page:match('id="data">\n(.-)\n</script>'))
  local status, out, err = t.shell("node script.js data.json")
  t.equal(status, 0, "node: " .. err)
  return json.decode(out)
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
  local list = {}
  for stack in pairs(sums) do list[#list + 1] = stack end
  table.sort(list)
  for i, stack in ipairs(list) do list[i] = ("%s %.0f\n"):format(stack, sums[stack]) end
  return table.concat(list)
end

local stream = made.stream()
for _, options in ipairs { {}, { weight = "cpu" }, { no_host = true } } do
  local trees = run((t.render(stream, "flamegraph", options)))
  local expected = t.render(stream, "folded", options)
  t.equal(folded(trees.forward), expected, "forward")
  t.equal(folded(trees.reversed, true), expected, "reversed")
end

-- A comparison with itself.
local reader, view = require("sysprof.reader"), require("sysprof.view")
local v = view.new(reader.parse_string(stream))
v:compare_with(view.new(reader.parse_string(stream)))
local out = {}
require("sysprof.flamegraph").render(v, function(s) out[#out + 1] = s end)
local trees = run(table.concat(out))
for _, lines in pairs(trees) do
  t.ok(#lines > 50, "stacks of a comparison")
  for _, line in ipairs(lines) do t.equal(line[2], line[3], "the base of a stack") end
end

-- The second value of real time is the part off CPU.
stream = made.stream(1, true)
trees = run((t.render(stream, "flamegraph", {})))
t.equal(folded(trees.forward), t.render(stream, "folded", {}), "real time, forward")
local off = t.render(stream, "folded", { event = "offcpu" })
t.ok(#off > 1000, "there are waits")
t.equal(folded(trees.forward, false, 3), off, "off CPU, forward")
t.equal(folded(trees.reversed, true, 3), off, "off CPU, reversed")

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
  if (!name || y >= 18) continue;
  if (w !== 1 || y < 2 || y + h > 16.001) throw new Error("a box outside of its row");
  const step = steps[x - 170] || (steps[x - 170] = {});
  step[name[0]] = h;
}
handlers.mousemove({ clientX: 170 + steps.length / 2, clientY: 9 });
console.log(JSON.stringify({ steps, tip, rows: data.list.length }));
]=]

local reader, view = require("sysprof.reader"), require("sysprof.view")
local v2 = view.new(assert(reader.parse_string(stream, { activity = true })))
out = {}
require("sysprof.flamegraph").render(v2, function(s) out[#out + 1] = s end)
local page = table.concat(out)
t.write_file("data.json", page:match('id="data">\n(.-)\n</script>'))
local palette, threads = require("sysprof.formats.flamegraph_palette"), require("sysprof.formats.flamegraph_threads")
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
