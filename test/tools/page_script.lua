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

-- Prints each tree as folded stacks with self, base and compiled. Checks that totals are
-- sums, and that boxes lie within their callers.
local DRIVER = [=[
const data = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const first = new Map();
data.names.forEach((name, i) => { if (!first.has(name)) first.set(name, i); });
const profile = trees.read(data.nodes, data.names,
  data.kinds.map(kind => kind === 1 ? 1 : 0), data.names.map(name => first.get(name)), data.diff);
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

local function folded(lines, reverse)
  local sums = {}
  for _, line in ipairs(lines) do
    local names = {}
    for i, name in ipairs(line[1]) do
      table.insert(names, reverse and 1 or i, text.folded(name))
    end
    local stack = table.concat(names, ";")
    sums[stack] = (sums[stack] or 0) + line[2]
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

t.finish()
