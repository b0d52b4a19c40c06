-- The flame graph's page in a browser: search, tooltips, zoom, reset, keys, hidden frames, the address, and
-- the numbers of the folded stacks. Skipped without Chromium.
-- TIMEOUT: 600
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local made = require("made_profile")
local page_driver = require("page_driver")
local text = require("sysprof.base.text")
local F = B.F

-- Added to the page: does what a user does and leaves what the page says in an
-- element of its own.
local DRIVER = [=[
<script>
(async function () {
  const $ = id => document.getElementById(id), canvas = $("graph"), out = { errors: [] };
  addEventListener("error", event => out.errors.push(event.message));
  const later = ms => new Promise(done => setTimeout(done, ms));
  // level: from the end where the root is.
  function mouse(type, x, level, more) {
    const place = canvas.getBoundingClientRect(), fromTop = $("icicle").ariaPressed === "true";
    const y = fromTop ? place.top + 4 + 18 * level + 9 : place.bottom - 4 - 18 * level - 9;
    canvas.dispatchEvent(new MouseEvent(type, { clientX: x, clientY: y, bubbles: true, ...more }));
  }
  // Returns whether the page took the key.
  function key(name, target, more) {
    return !(target || document).dispatchEvent(
      new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
  }
  function tip(x, level) {
    mouse("mousemove", x, level);
    if ($("tip").style.display !== "block") return null;
    const cells = [...$("tip").querySelectorAll("tr")].map(row =>
      [...row.cells].map(cell => cell.textContent));
    return { name: $("tip").querySelector("b").textContent, cells: cells };
  }
  function searchFor(query) {
    $("search").value = query;
    $("search").dispatchEvent(new Event("input"));
    return $("matched").textContent;
  }
  out.total = $("total").textContent;
  out.title = document.title;
  out.legend = $("legend").textContent;
  out.searches = QUERIES.map(searchFor);
  key("Escape");
  out.afterEscape = [$("search").value, $("matched").textContent];
  const xs = [];
  for (let x = 5; x < innerWidth; x += 61) xs.push(x);
  out.stacks = xs.map(x => {
    const list = [];
    for (let level = 0; level < 12; level++) {
      const found = tip(x, level);
      if (!found) break;
      list.push(found);
    }
    return list;
  });
  // Zoom to the frame three levels up, which then fills the width.
  mouse("click", 300, 3);
  out.zoomed = [tip(5, 3), tip(300, 3), tip(innerWidth - 30, 3)];
  $("reset").click();
  out.afterReset = tip(innerWidth - 30, 0);
  key("ArrowUp");
  key("ArrowUp");
  out.byKeys = [tip(5, 2), tip(innerWidth - 30, 2)];
  key("Escape");
  key("i");
  key("r");
  out.pressed = [$("icicle").getAttribute("aria-pressed"), $("reverse").getAttribute("aria-pressed")];
  key("r");
  key("i");

  // The search field takes what is typed.
  const field = $("search");
  out.ctrlF = [key("f", null, { ctrlKey: true }), document.activeElement === field,
               key("f", field, { ctrlKey: true }), key("r", field), key("h", field)];
  searchFor("f1");
  tip(300, 3);
  out.tipAtStart = $("tip").style.display;
  searchFor(QUERIES[0]);
  out.tipWhileTyping = $("tip").style.display;
  const steps = [];
  for (const shift of [false, false, true, true]) {
    key("Enter", field, { shiftKey: shift });
    steps.push($("matched").textContent, $("hover").textContent);
  }
  out.steps = steps;
  key("Escape", field);
  key("Escape");

  // What is seen of a state, and whether its address shows the same.
  const seen = () => JSON.stringify([[5, 300, 700, 1200].map(x => [0, 1, 2, 3, 4, 5].map(level => tip(x, level))),
    $("search").value, $("matched").textContent, $("hidden").textContent,
    ["icicle", "reverse", "fold"].map(id => $(id).ariaPressed)]);
  const whole = seen(), states = [[location.hash, whole]], hidden = tip(300, 2).name;
  mouse("click", 300, 2, { altKey: true });
  out.hidden = [hidden, $("hidden").textContent, seen().includes(JSON.stringify(hidden) + ',"cells"')];
  states.push([location.hash, seen()]);
  // The next frame takes its place, and is hidden by the key.
  mouse("mousemove", 300, 2);
  const next = $("tip").querySelector("b").textContent;
  key("h");
  out.hiddenByKey = [next, $("hidden").lastChild.textContent, $("tip").style.display];
  states.push([location.hash, seen()]);
  for (const act of [() => mouse("click", 300, 3), () => key("f"), () => key("r"), () => mouse("click", 300, 2), () => key("i")]) {
    act();
    states.push([location.hash, seen()]);
  }
  document.activeElement.blur();
  out.back = [];
  for (let i = states.length - 2; i >= 0; i--) {
    history.back();
    await later(50);
    out.back.push(location.hash === states[i][0] && seen() === states[i][1]);
  }
  out.copied = [];
  for (const [hash, picture] of states) {
    location.hash = hash;
    await later(50);
    out.copied.push(seen() === picture);
  }
  out.distinct = new Set(states.map(([hash]) => hash)).size;

  // Addresses that somebody else made.
  out.hostile = [];
  for (const hash of ["z=9999.1&zn=x", "h=__proto__", "q=" + encodeURIComponent("/(a+)+$/"), "%", "%E0%A4%A", "i=javascript:1",
                      "q=%3Cscript%3Ealert(1)%3C/script%3E", "z=0".padEnd(5000, ".0"), "x".repeat(70000)]) {
    location.hash = hash;
    await later(50);
    out.hostile.push($("total").textContent + $("matched").textContent);
    location.hash = "";
    await later(50);
    out.hostile.push(seen() === whole);
  }
  out.elements = [...new Set([...document.body.querySelectorAll("*")].map(e => e.localName))].sort();
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify(out);
  document.body.append(result);
})();
</script>
</body>]=]

-- The same for a part of the time: what a user drags over, keys, the address.
local RANGE_DRIVER = [=[
<script>
(async function () {
  const $ = id => document.getElementById(id), canvas = $("times"), out = { errors: [] };
  addEventListener("error", event => out.errors.push(event.message));
  const later = ms => new Promise(done => setTimeout(done, ms));
  function pointer(type, share) {
    const place = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent(type, { clientX: place.left + 170 + (place.width - 170) * share,
      clientY: place.top + 12, bubbles: true, pointerId: 1, button: 0 }));
  }
  function drag(from, to) {
    pointer("pointerdown", from);
    pointer("pointermove", (from + to) / 2);
    pointer("pointermove", to);
    pointer("pointerup", to);
  }
  function key(name) {
    document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  }
  function seen() {
    $("search").value = QUERIES[0];
    $("search").dispatchEvent(new Event("input"));
    return { hash: location.hash, total: $("total").textContent, title: document.title, hidden: $("hidden").textContent,
             matched: $("matched").textContent };
  }
  out.states = [seen()];
  for (const act of [() => drag(0.2, 0.7), () => drag(0.6, 0.3), () => key("."), () => key("-"), () => key("+"), () => key(",")]) {
    act();
    out.states.push(seen());
  }
  const { hash, total } = out.states[2];
  pointer("pointerdown", 0.5);
  pointer("pointerup", 0.5);
  out.clicked = seen();
  location.hash = hash;
  await later(50);
  out.address = [$("total").textContent === total, location.hash === hash];
  key("Escape");
  out.escaped = [location.hash, $("total").textContent, document.title];
  drag(0.1, 0.4);
  $("hidden").firstChild.click();
  out.undone = seen();
  location.hash = "from=0.000001&to=0.5000001";
  await later(50);
  out.odd = [$("hidden").textContent];
  location.hash = "from=900000&to=900001";
  await later(50);
  out.odd.push($("hidden").textContent);
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify(out);
  document.body.append(result);
})();
</script>
</body>]=]

-- Shows the page and returns what the driver found, DRIVER if there is none.
local function show(page, queries, with)
  for i, query in ipairs(queries) do queries[i] = text.json(query) end
  local driver = (with or DRIVER):gsub("QUERIES", function()
    return "[" .. table.concat(queries, ",") .. "]"
  end)
  return page_driver.show(page, driver, 1300)
end

-- Sums of folded lines that begin with a stack, and all.
local function prefix_sums(folded)
  local sums, all = {}, 0
  for stack, value in folded:gmatch("(.-) (%d+)\n") do
    local at = ""
    for name in stack:gmatch("[^;]+") do
      at = at .. ";" .. name
      sums[at] = (sums[at] or 0) + value
    end
    all = all + value
  end
  return sums, all
end

local function number(s) return tonumber((s:match("^[%d,]+"):gsub(",", ""))) end

page_driver.need()

-- -- Names that could do harm ----------------------------------------------

local stream = made.stream()
local folded = t.render(stream)
local sums, all = prefix_sums(folded)
local QUERIES = { "f1", "script", '"', "nothing of this", "/^f\\d+ /", "/(/" }
local r = show(t.render(stream, "flamegraph", { title = "</title><script>alert(3)</script>" }),
	       { unpack(QUERIES) })
if not r then t.finish() end
t.equal(r.total, all .. " samples", "samples")
t.equal(r.title, "</title><script>alert(3)</script>", "title")
t.contains(r.legend, "Lua, compiled", "legend")
for i, query in ipairs(QUERIES) do
  local expected = 0
  for stack, value in folded:gmatch("(.-) (%d+)\n") do
    for name in stack:gmatch("[^;]+") do
      local hit = name:find(query, 1, true)
      if i == 5 then hit = name:find("^f%d+ ") end
      if hit then
	expected = expected + value
	break
      end
    end
  end
  local shown = r.searches[i]:gsub("^%d+ match[es]*, ", "")
  t.equal(shown, i == 6 and "no regular expression" or
	  ("%.2f %% (%d samples)"):format(100 * expected / all, expected), "search " .. query)
end
t.equal(table.concat(r.afterEscape, "|"), "|", "after Esc")

local seen = 0
for _, list in ipairs(r.stacks) do
  local at = ""
  t.equal(list[1] and list[1].name, "all", "the whole is below")
  for i = 2, #list do
    at = at .. ";" .. text.folded(list[i].name)
    local cells = list[i].cells
    t.equal(number(cells[3][2]), sums[at], "total of " .. at)
    t.equal(cells[3][3], ("%.2f %%"):format(100 * (sums[at] or 0) / all), "share of " .. at)
    seen = seen + 1
  end
end
t.ok(seen > 60, "frames under the pointer")

t.ok(r.zoomed[1].name == r.zoomed[2].name and r.zoomed[1].name == r.zoomed[3].name,
     "a zoomed frame fills the width")
t.contains(r.zoomed[1].cells[3][4], "100.00 % of zoomed", "share of the zoomed frame")
t.equal(r.afterReset.name, "all", "after the reset")
t.ok(r.byKeys[1].name == r.byKeys[2].name, "zoomed by keys")
t.equal(table.concat(r.pressed, " "), "true true", "icicle and reverse by keys")

-- -- Keys, hidden frames, the address ---------------------------------------

local function booleans(list)
  local out = {}
  for i, v in ipairs(list) do out[i] = v and "1" or "0" end
  return table.concat(out)
end

t.equal(booleans(r.ctrlF), "11000", "Ctrl+F opens the page's search, then the browser's; other keys are typed")
t.equal(r.tipAtStart .. " " .. r.tipWhileTyping, "block none", "the tooltip yields to typing")
local count = r.steps[1]:match("^1 of ([%d,]+) matches, ")
t.ok(count and number(count) > 3, "the first match: " .. r.steps[1])
t.contains(r.steps[3], "2 of " .. tostring(count), "the second match")
t.equal(r.steps[5] .. r.steps[6], r.steps[1] .. r.steps[2], "back to the first match")
t.contains(r.steps[7], tostring(count) .. " of ", "from the first to the last match")
for i = 2, 8, 2 do t.contains(r.steps[i], QUERIES[1], "the match is shown") end
t.equal(r.hidden[2], "\226\156\149 " .. r.hidden[1], "a button shows a hidden frame again")
t.equal(r.hidden[3], false, "a hidden frame is nowhere")
t.equal(r.hiddenByKey[2], "\226\156\149 " .. r.hiddenByKey[1], "hidden by a key")
t.equal(r.hiddenByKey[3], "block", "then the frame at the pointer is pointed at")
t.equal(booleans(r.back), "1111111", "Back undoes each step")
t.equal(booleans(r.copied), "11111111", "an address shows the same picture")
t.equal(r.distinct, 8, "addresses")
for i = 1, #r.hostile, 2 do
  t.contains(r.hostile[i], all .. " samples", "a hostile address: " .. r.hostile[i])
  t.equal(r.hostile[i + 1], true, "after a hostile address")
end
t.equal(#r.hostile, 18, "hostile addresses")
t.contains(r.hostile[5], "may take long", "a regular expression of somebody else")
t.equal(table.concat(r.errors, " "), "", "errors of the page")

-- Elements of the page itself; names must not add any.
t.equal(table.concat(r.elements, " "), "b button canvas dialog div footer form h1 header i " ..
	"input kbd noscript p script span table tbody td th tr", "elements")

-- -- A part of the time ------------------------------------------------------

local reader, view = require("sysprof.read.reader"), require("sysprof.show.view")
stream = made.stream(1, true)

-- Returns a view of the samples from a time to another one, in seconds.
local function part_of(from, to, has_activity)
  return assert(view.new(assert(reader.parse_string(stream, { from = from and from * 1e6, to = to and to * 1e6,
							      activity = has_activity }))))
end

local function render(v, format)
  local out = {}
  require("sysprof.formats." .. format).render(v, function(s) out[#out + 1] = s end)
  return table.concat(out)
end

-- Checks what the page shows against the folded stacks of the same time.
local function check_part(shown, from, to)
  local of_match, of_all = 0, 0
  for stack, value in render(part_of(from, to), "folded"):gmatch("(.-) (%d+)\n") do
    of_all = of_all + value
    if stack:find("f1", 1, true) then of_match = of_match + value end
  end
  local function amount(v) return v >= 1e9 and ("%.3f s"):format(v / 1e9) or ("%.3f ms"):format(v / 1e6) end
  t.equal(shown.total, amount(of_all), "real time of " .. shown.hash)
  local share = of_all > 0 and 100 * of_match / of_all or 0
  t.equal(shown.matched:match(", (.*)"), ("%.2f %% (%s)"):format(share, amount(of_match)), "search in " .. shown.hash)
  return of_all
end

r = show(render(part_of(nil, nil, true), "flamegraph"), { "f1" }, RANGE_DRIVER)
if r then
  t.equal(table.concat(r.errors, " "), "", "errors of the page")
  local whole = check_part(r.states[1])
  for i = 2, #r.states do
    local shown = r.states[i]
    local from, to = shown.hash:match("from=([%d.]+)&to=([%d.]+)")
    t.ok(from, "the address has a range: " .. shown.hash)
    if from then
      from, to = tonumber(from), tonumber(to)
      t.equal(("%.6f"):format(from * 50 % 1) .. ("%.6f"):format(to * 50 % 1), "0.0000000.000000", "whole columns")
      t.ok(check_part(shown, from, to) < whole, "a part of the time")
      local options = ("--from=%.14g --to=%.14g"):format(from, to)
      t.equal(shown.hidden, "\226\156\149 " .. options, "a button shows the whole time again")
      t.equal(shown.title, r.states[1].title .. ", " .. options, "title")
    end
  end
  t.ok(r.states[2].hash ~= r.states[3].hash and r.states[3].hash ~= r.states[4].hash, "ranges")
  local function begin(i) return r.states[i].hash:match("from=([%d.]+)") end
  t.ok(begin(5) == begin(4) and begin(6) == begin(4), "half and double keep the begin")
  for _, shown in ipairs { r.clicked, r.undone } do
    t.equal(shown.total .. shown.hidden .. shown.title, r.states[1].total .. r.states[1].title, "the whole time again")
  end
  t.equal(booleans(r.address), "11", "the address keeps the time")
  t.equal(table.concat(r.escaped, " "), (" %s %s"):format(r.states[1].total, r.states[1].title), "after Esc")
  t.equal(r.odd[1], "", "an address without a range")
  t.equal(r.odd[2], "", "an address behind the end")
end

-- -- Many frames -----------------------------------------------------------

local b, state = B.new():context(), 1
local function random(n)
  state = state * 16807 % 2147483647
  return 1 + state % n
end
for fid = 1, 1500 do b:lfunc(fid, fid, "@x", "function_" .. fid) end
for id = 1, 3200 do
  local list = { F.cbound }
  for depth = 1, 10 + random(12) do list[depth + 1] = F.lfunc(random(depth < 4 and 6 or 1500)) end
  b:stack(id, list):sample(id, 0, random(3))
end
stream = b:finish()
local page = t.render(stream, "flamegraph")
local _, commas = page:match('"nodes":%[(.-)%]'):gsub(",", "")
t.ok((commas + 1) / 3 > 40000, "frames of a large page")
sums, all = prefix_sums((t.render(stream)))
r = show(page, { "function_77 " })
if r then
  t.equal(number(r.total), all, "samples of a large page")
  t.ok(#r.stacks[10] > 3, "frames of a large page under the pointer")
end

t.finish()
