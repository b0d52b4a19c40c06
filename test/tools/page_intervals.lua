-- The figures of a comparison's page in a browser, and their 95 % intervals, are those of the table. Skipped without
-- Chromium.
-- TIMEOUT: 600

local t = require("tools_test")
local page_driver = require("page_driver")

local TOOL = ("'%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)
-- A figure is rounded in both, so their ends differ by so much, and strata of the page may be longer.
local ROUNDED, PART = 0.0021, 0.03

page_driver.need()

-- -- Programs ------------------------------------------------------------------

-- Functions of different costs, in two versions: some are slower, faster, new, gone, or allocate more.
local PROGRAM = [[
local function spin(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function twice(n) local s = 0 for i = 1, n do s = s + i % 5 end return s end
local function texts(n) local t = {} for i = 1, n do t[i] = tostring(i) end return t end
local function words(n) local t = {} for i = 1, n do t[i] = { i } end return t end
local function gone(n) local s = 0 for i = 1, n do s = s + i % 3 end return s end
local function new(n) local s = 0 for i = 1, n do s = s + i % 11 end return s end
jit.off()
for i = 1, 600 do
  spin(SPIN) twice(TWICE) texts(500) words(WORDS)
  if GONE then gone(9000) else new(4000) end
end
]]

local function record(name, values)
  t.write_file("app.lua", (PROGRAM:gsub("%u%u%u%u+", values)))
  local status, _, err = t.shell(("%srun --hz=1000 -e cpu,alloc --period=4096 -o %s.bin app.lua"):format(TOOL, name))
  t.equal(status, 0, "run: " .. err)
end

local OLD = { SPIN = 20000, TWICE = 30000, WORDS = 300, GONE = "true" }
record("old", OLD)
record("again", OLD)
record("slower", { SPIN = 40000, TWICE = 30000, WORDS = 900, GONE = "false" })
record("faster", { SPIN = 20000, TWICE = 3000, WORDS = 50, GONE = "false" })

-- -- The page --------------------------------------------------------------------

-- Notes the tooltips of all boxes that have no caller, leaf first.
local DRIVER = [=[
<script>
(async function () {
  const $ = id => document.getElementById(id), canvas = $("graph"), out = { errors: [], rows: [] }, seen = new Set();
  addEventListener("error", event => out.errors.push(event.message));
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true, cancelable: true }));
  const place = canvas.getBoundingClientRect();
  for (let x = 0.25; x < place.width; x += 0.5) {
    canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: place.left + x, clientY: place.bottom - 4 - 18 - 9, bubbles: true }));
    if ($("tip").style.display !== "block") continue;
    const name = $("tip").querySelector("b").textContent;
    if (seen.has(name)) continue;
    seen.add(name);
    out.rows.push({ name: name, cells: [...$("tip").querySelectorAll("tr")].map(row => [...row.cells].map(c => c.textContent)) });
  }
  out.total = $("total").textContent;
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify(out);
  document.body.append(result);
})();
</script>
</body>]=]

local function show(path)
  return assert(page_driver.show(t.read_file(path), DRIVER, 1900))
end

-- -- Figures ---------------------------------------------------------------------

local FACTOR = { s = 1000, ms = 1, B = 1, KiB = 2^10, MiB = 2^20, GiB = 2^30 }

-- Returns an amount as a number: milliseconds, bytes. A table has the first without their unit.
local function amount(s)
  local sign, number, unit = s:match("^([+-]?)([%d.,]+) *(%a*)$")
  if not number then error("no amount: " .. s) end
  return (sign == "-" and -1 or 1) * (number:gsub(",", "") + 0) * (unit == "" and 1 or FACTOR[unit])
end

-- Returns the ends of an interval around a value.
local function ends(s, value)
  local half = s:match("^\194\177 (.*)$") or not s:find("..", 1, true) and s ~= "" and s
  if half then return value - amount(half), value + amount(half) end
  local low, high = s:match("^(.-) %.%. (.*)$")
  if not low then return value, value end
  return amount(low), amount(high)
end

local function near(a, b, size, what)
  t.ok(math.abs(a - b) <= ROUNDED + PART * size, ("%s: %.5g and %.5g"):format(what, a, b))
end

-- Compares the page of two profiles with their table.
local function check(base, profile, event)
  local status, out, err = t.shell(("%sdiff -e %s --by=function --limit=0 %s.bin %s.bin"):format(TOOL, event, base, profile))
  t.equal(status, 0, err)
  os.remove("d.html")
  local _
  status, _, err = t.shell(("%sdiff -e %s -o d.html %s.bin %s.bin"):format(TOOL, event, base, profile))
  t.equal(status, 0, err)
  local page, by_name, found, marks = show("d.html"), {}, 0, 0
  t.equal(table.concat(page.errors, " "), "", "errors of the page")
  for _, its in ipairs(page.rows) do by_name[its.name] = its.cells end
  local first = out:find("\n[^\n]*change[^\n]*before[^\n]*\n")
  for line in out:sub(first):gmatch("[^\n]+") do
    -- Columns of 11, an interval of any width in between, then figures and a name.
    local mark, change, interval, before, after, name = line:match(
      "^(~?) *([+-]?[%d.]+ ?%a*) +(.-) +([%d.]+ ?%a*) +([%d.]+ ?%a*) +[%d.]+ +[%d.]+  (.*)$")
    local cells = name and by_name[name]
    if cells then
      local what, rows = ("%s, %s: %s"):format(profile, event, name), {}
      for _, cell in ipairs(cells) do
	rows[cell[1]] = rows[cell[1]] or {}
	table.insert(rows[cell[1]], cell)
      end
      local size = math.max(amount(before), amount(after))
      local now, old = rows.total[1], rows.before[1]
      near(amount(now[2]), amount(after), 0.01 * size, what .. ": after")
      near(amount(old[2]), amount(before), 0.01 * size, what .. ": before")
      local shown_change = old[3]
      near(amount(shown_change), amount(change), 0.01 * size, what .. ": change")
      local intervals = rows["95 %"] or {}
      local of_change = intervals[#intervals] and intervals[#intervals][3] or ""
      local low, high = ends(of_change, amount(shown_change))
      local least, most = ends(interval, amount(change))
      near(low, least, math.abs(most - least), what .. ": low")
      near(high, most, math.abs(most - least), what .. ": high")
      t.equal(rows[""] ~= nil, mark == "~", what .. ": mark")
      found, marks = found + 1, marks + (mark == "~" and 1 or 0)
    end
  end
  return found, marks
end

for _, event in ipairs { "cpu", "alloc" } do
  for _, profile in ipairs { "again", "slower", "faster" } do
    local found, marks = check("old", profile, event)
    print(("%s, %s: %d functions, %d of them marked"):format(profile, event, found, marks))
    t.ok(found >= 3, profile .. ": functions on the page")
  end
end

t.finish()
