-- The same profile in each format: values, order and sums agree.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local F = B.F

math.randomseed(5)

local function random_profile(compiled)
  local b = B.new():context()
  for fid = 1, 30 do b:lfunc(fid, fid, "@x", "f" .. fid) end
  for addr = 1, 9 do b:hsym(addr, addr, "c" .. addr) end
  for id = 1, 150 do
    local lua, host = { F.cbound }, { F.host(1), F.vm }
    for d = 2, math.random(2, 12) do lua[d] = F.lfunc(math.random(1, 30), d) end
    if compiled then lua[#lua + 1] = F.trace(id, math.random(1, 8)) end
    for d = 3, math.random(2, 5) do host[d] = F.host(math.random(1, 9)) end
    b:stack(2 * id, lua):stack(2 * id + 1, host)
    b:sample(2 * id, 2 * id + 1, math.random(1, 5), 1, math.random(0, 5000))
  end
  return b:finish()
end

local function parse_folded(folded)
  local stacks, sum = {}, 0
  for stack, value in folded:gmatch("(.-) (%d+)\n") do
    t.ok(not stacks[stack], "stack stands once: " .. stack)
    stacks[stack] = tonumber(value)
    sum = sum + value
  end
  return stacks, sum
end

-- Self and total of each function, from folded stacks.
local function count(stacks)
  local self, total = {}, {}
  for stack, value in pairs(stacks) do
    local seen, last = {}
    for name in stack:gmatch("[^;]+") do
      if not seen[name] then total[name] = (total[name] or 0) + value end
      seen[name], last = true, name
    end
    self[last] = (self[last] or 0) + value
  end
  return self, total
end

-- Folded stacks again, from the data in a page. Functions that are compiled are
-- nodes of their own.
local function stacks_of_page(page)
  local names, stacks, path = {}, {}, {}
  for name in page:match('"names":%[(.-)%]'):gmatch('"(.-)"') do
    names[#names + 1] = name
  end
  local depth_before = 0
  for depth, name, value in page:match('"nodes":%[(.-)%]'):gmatch("(%d+),(%d+),(%d+)") do
    depth, value = tonumber(depth), tonumber(value)
    t.ok(depth <= depth_before + 1, "parents come first")
    path[depth], depth_before = names[name + 1], depth
    if value > 0 then
      local stack = table.concat(path, ";", 1, depth)
      stacks[stack] = (stacks[stack] or 0) + value
    end
  end
  return stacks
end

local function check(stream, compiled)
  for _, weight in ipairs { "samples", "cpu" } do
    local options = { weight = weight, limit = 0 }
    local folded, p = t.render(stream, "folded", options)
    local stacks, sum = parse_folded(folded)
    local samples, us = p:totals()
    t.equal(sum, weight == "cpu" and us or samples, weight .. ": sum of folded stacks")

    local self, total = count(stacks)
    local scale = weight == "cpu" and 1000 or 1
    local rows, last = 0, math.huge
    local top = t.render(stream, "top", options)
    t.equal(top:find("compiled%", 1, true) ~= nil, compiled, "column for compiled code")
    local row = "\n +([%d.]+) +[%d.]+ +([%d.]+) +[%d.]+" ..
		(compiled and " [%d. ]+" or "") .. "  ([^\n]+)"
    for s, tot, name in top:gmatch(row) do
      rows = rows + 1
      s, tot = tonumber(s), tonumber(tot)
      t.ok(math.abs(s * scale - (self[name] or 0)) < 1e-6, weight .. ": self of " .. name)
      t.ok(math.abs(tot * scale - total[name]) < 1e-6, weight .. ": total of " .. name)
      t.ok(s <= last, weight .. ": order of the table")
      last = s
    end
    local names = 0
    for _ in pairs(total) do names = names + 1 end
    t.equal(rows, names, weight .. ": rows of the table")

    local from_page = stacks_of_page(t.render(stream, "flamegraph", options))
    for stack, value in pairs(stacks) do
      t.equal(from_page[stack], value, weight .. ": in the page: " .. stack)
    end
    for stack in pairs(from_page) do
      t.ok(stacks[stack], weight .. ": only in the page: " .. stack)
    end
  end
end

local stream = random_profile(false)
check(stream, false)
check(random_profile(true), true)

local short = t.render(stream, "top", { limit = 3 })
t.contains(short, "more functions (--limit=0 shows all)", "limit of the table")

-- An empty profile is fine in each format.
local empty = B.new():finish()
t.equal(t.render(empty), "", "empty profile, folded")
t.contains(t.render(empty, "top"), "samples            0", "empty profile, table")
t.contains(t.render(empty, "flamegraph"), '"nodes":[]', "empty profile, page")

t.finish()
