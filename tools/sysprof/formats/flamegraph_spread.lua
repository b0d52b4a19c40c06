----------------------------------------------------------------------------
-- What a flame graph's page needs for the 95 % intervals of its boxes, see sysprof.model.spread.
--
-- An object: n and sum of all ticks; unseen; strata: ticks, weight and squares of each; scale of the amounts; texts:
-- the weights of nodes by strata, written as those of sysprof.formats.flamegraph_columns, the number of a list is that
-- of the node; factors: squares by weight of the ticks of each list; draws: distance from the node before, rest,
-- variance and alone.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local columns = require("sysprof.formats.flamegraph_columns")
local countsort = require("sysprof.base.countsort")
local limits = require("sysprof.base.limits")
local pairmap = require("sysprof.base.pairmap")

local CELL = pairmap.kind [[
  double a;		/* Place of the node. */
  int32_t b;		/* Stratum. */
  double weight;
]]
local sums = array.kind("struct { double weight, squares, rest, variance, alone; }")

local spreads = {}

-- Returns what each node has in each stratum, after joining so many neighbouring strata into one: 1 or 2.
local function cells_of(cells, many)
  if many == 1 then return cells end
  local wide = pairmap.new(CELL)
  for i = 1, cells.count do
    local cell = cells.list[i]
    local at = wide:put(cell.a, math.floor(cell.b / 2))	-- May move the list.
    local into = wide.list[at]
    into.weight = into.weight + cell.weight
  end
  return wide
end

local function strata_texts(strata, many)
  local out, n, weight, squares = {}, 0, 0, 0
  for i, s in ipairs(strata) do
    n, weight, squares = n + s.n, weight + s.weight, squares + s.squares
    if i % many == 0 or i == #strata then
      out[#out + 1] = ("%d,%.0f,%.8g"):format(n, weight, squares)
      n, weight, squares = 0, 0, 0
    end
  end
  return table.concat(out, ",")
end

local function write_cells(write, cells, most, strata)
  local list = cells.list
  local function node_of(i) return list[i + 1].a end
  local order = countsort(countsort(nil, cells.count, strata, function(i) return list[i + 1].b end), cells.count, most,
			  node_of)
  local put, flush = columns.writer(write)
  local first, before = 0, 0
  for i = 1, cells.count do
    if i == cells.count or node_of(order[i]) ~= node_of(order[first]) then
      local node, sum, written, stratum = node_of(order[first]), 0, 0, 0
      put(node - before)
      put(i - first)
      for k = first, i - 1 do
	local cell = list[order[k] + 1]
	sum = sum + cell.weight
	put(cell.b - stratum)
	put(math.floor(sum + 0.5) - written)
	stratum, written = cell.b, math.floor(sum + 0.5)
      end
      first, before = i, node
    end
  end
  flush()
end

-- Writes the object. its: of the view; scale: of its amounts; place_of: by slot, 0 if it is not shown; most: the last
-- place.
function spreads.write(its, scale, slots, place_of, most, write)
  local cells, nodes = pairmap.new(CELL), array.zeros(sums, most + 1)
  for slot = 1, slots:count() do
    local place = place_of[slot]
    local node = nodes[place]
    local rest, variance, alone
    if place > 0 then
      rest, variance, alone = its:visit(slot, function(stratum, weight, squares)
	if weight == 0 then return end
	local at = cells:put(place, stratum - 1)
	cells.list[at].weight = cells.list[at].weight + weight
	node.weight, node.squares = node.weight + weight, node.squares + squares
      end)
    end
    if rest then
      node.rest, node.variance, node.alone = node.rest + rest, node.variance + variance, node.alone + alone
    end
  end
  local many = 1
  while cells.count > limits.SPREAD_VALUES and many < #its.strata do
    many = many * 2
    cells = cells_of(cells, many)
  end
  write(('{"n":%d,"sum":%.0f,"unseen":%.6g,"scale":%.9g,"strata":[%s],\n"texts":['):format(its.n, its.sum, its.unseen,
    scale, strata_texts(its.strata, many)))
  write_cells(write, cells, most, #its.strata)
  local factors, draws, before = {}, {}, 0
  for place = 1, most do
    local node = nodes[place]
    if node.weight > 0 then factors[#factors + 1] = ("%.6g"):format(node.squares / node.weight) end
    if node.rest > 0 or node.variance > 0 or node.alone < 0 then
      draws[#draws + 1] = ("%d,%.6g,%.6g,%.4g"):format(place - before, node.rest, node.variance, node.alone)
      before = place
    end
  end
  write(('],\n"factors":[%s],\n"draws":[%s]}'):format(table.concat(factors, ","), table.concat(draws, ",")))
end

return spreads
