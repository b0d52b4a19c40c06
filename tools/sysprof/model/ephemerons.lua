----------------------------------------------------------------------------
-- Values of tables with weak keys, as edges of a graph: each value has one edge, mostly from its key.
--
-- The collector keeps a value while it keeps both table and key. A program removes the key, so the value counts for
-- the key. But a value that refers to its key keeps itself: LuaJIT marks it by the table, which then has the edge.
-- Not found is a value that keeps its key through an object that others keep, too.
--
-- Nodes are those of sysprof.model.dominators. A list of pairs has count, and arrays: holder, key, value.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")

local BYTES, NUMBERS = array.kind("uint8_t"), array.kind("uint32_t")
local STEPS = 4		-- Of the search for keys, for each node, edge and pair.

local ephemerons = {}

-- Returns the pairs by node, as lists: head[node] and next_of[pair] are numbers of pairs from 1 on, 0 at the end.
local function lists_by(n, count, node_of)
  local head, next_of = array.zeros(NUMBERS, n), array.zeros(NUMBERS, count + 1)
  for k = count, 1, -1 do
    local v = node_of(k)
    if v then next_of[k], head[v] = head[v], k end
  end
  return head, next_of
end

-- Returns by node whether the root reaches it. arrive(node, seen, visit) visits what pairs add; it returns true if the
-- edges of the node do not count.
local function reached(n, first, to, queue, arrive)
  local seen, tail, head = array.zeros(BYTES, n), 0, 0
  local function visit(v)
    if seen[v] == 0 then
      seen[v], queue[tail] = 1, v
      tail = tail + 1
    end
  end
  visit(0)
  while head < tail do
    local v = queue[head]
    head = head + 1
    if not arrive(v, seen, visit) then
      for e = first[v], first[v + 1] - 1 do
	local w = to[e]
	if seen[w] == 0 then
	  seen[w], queue[tail] = 1, w
	  tail = tail + 1
	end
      end
    end
  end
  return seen
end

-- Returns keeps(value, key): does a value lead to a key by nodes that are reached through keys only? false as well when
-- the search has taken too long.
local function new_search(n, first, to, stack, alone, left)
  local mark, stamp = array.zeros(NUMBERS, n), 0
  return function(value, key)
    if value == key then return true end
    if alone[value] ~= 0 then return false end
    stamp = stamp + 1
    local top = 1
    stack[0], mark[value] = value, stamp
    while top > 0 and left > 0 do
      top = top - 1
      local v = stack[top]
      for e = first[v], first[v + 1] - 1 do
	local w = to[e]
	if w == key then return true end
	if alone[w] == 0 and mark[w] ~= stamp then
	  mark[w], stack[top] = stamp, w
	  top = top + 1
	end
      end
      left = left - 1 - (first[v + 1] - first[v])
    end
    return false
  end
end

-- Returns by pair the node that gets the edge to the value, or n for none.
local function sources(n, first, to, pairs)
  local count, holder, key, value = pairs.count, pairs.holder, pairs.key, pairs.value
  local by_holder, next_of_holder = lists_by(n, count, function(k) return holder[k] end)
  local by_key, next_of_key = lists_by(n, count, function(k) return key[k] end)
  local queue = array.zeros(NUMBERS, n)
  local function each(v, head, next_of, visit, other, seen)
    local k = head[v]
    while k ~= 0 do
      if not other or seen[other[k]] ~= 0 then visit(value[k]) end
      k = next_of[k]
    end
  end
  local alone = reached(n, first, to, queue, function(v) return by_key[v] ~= 0 end)
  local by_both = reached(n, first, to, queue, function(v, seen, visit)
    each(v, by_holder, next_of_holder, visit, key, seen)
    each(v, by_key, next_of_key, visit, holder, seen)
  end)
  local marked = reached(n, first, to, queue, function(v, _, visit) each(v, by_holder, next_of_holder, visit) end)
  local keeps = new_search(n, first, to, queue, alone, STEPS * (n + first[n] + count))
  local from = array.zeros(NUMBERS, count + 1)
  for k = 1, count do
    if marked[holder[k]] == 0 or marked[key[k]] == 0 then from[k] = n
    elseif by_both[key[k]] == 0 or keeps(value[k], key[k]) then from[k] = holder[k]
    else from[k] = key[k] end
  end
  return from
end

-- Adds the edges of the values to a graph of n nodes; to has room for them. first changes, too.
function ephemerons.add(n, first, to, pairs)
  if pairs.count == 0 then return end
  local from, added = sources(n, first, to, pairs), 0
  local head, next_of = lists_by(n, pairs.count, function(k)
    if from[k] == n then return nil end
    added = added + 1
    return from[k]
  end)
  local stop = first[n]
  local at = stop + added		-- From the last node on, since edges move up.
  for v = n - 1, 0, -1 do
    local start, k = first[v], head[v]
    first[v + 1] = at
    while k ~= 0 do
      at = at - 1
      to[at], k = pairs.value[k], next_of[k]
    end
    if at == stop then break end
    for e = stop - 1, start, -1 do
      at = at - 1
      to[at] = to[e]
    end
    stop = start
  end
end

return ephemerons
