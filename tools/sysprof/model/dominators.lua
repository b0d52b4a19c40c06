----------------------------------------------------------------------------
-- Dominators of a graph: which node keeps which others from being reached.
--
-- The algorithm is that of Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a Flowgraph", 1979), with
-- path compression: edges times a logarithm at most, whatever the graph is. No function here is recursive.
--
-- Nodes 0 to n - 1; edges of i are to[first[i]] to to[first[i + 1] - 1]; 0 is the root.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")

local NUMBERS, DOUBLES = array.kind("uint32_t"), array.kind("double")

local dominators = {}

local function numbers(n) return array.zeros(NUMBERS, n) end

-- The collector does not know how large arrays are.
local function free(...)
  for i = 1, select("#", ...) do array.free((select(i, ...))) end
end

-- Numbers the nodes in the order of a search by depth, from 1 on. Returns the number of each node, 0 if it is not
-- reached; the node of each number; the number of the node before each number; and the last number.
local function search(n, first, to)
  local number, node, parent, next_edge = numbers(n), numbers(n + 1), numbers(n + 1), numbers(n + 1)
  local count, at = 1, 1
  number[0], node[1], next_edge[1] = 1, 0, first[0]
  while at ~= 0 do
    local v, e = node[at], next_edge[at]
    if e < first[v + 1] then
      next_edge[at] = e + 1
      local w = to[e]
      if number[w] == 0 then
	count = count + 1
	number[w], node[count], parent[count], next_edge[count] = count, w, at, first[w]
	at = count
      end
    else
      at = parent[at]
    end
  end
  free(next_edge)
  return number, node, parent, count
end

-- Returns the edges towards each number, as first and from.
local function reversed(count, node, number, first, to)
  local start, total = numbers(count + 2), 0
  for i = 1, count do
    local v = node[i]
    for e = first[v], first[v + 1] - 1 do
      local w = number[to[e]]
      start[w + 1] = start[w + 1] + 1
      total = total + 1
    end
  end
  for i = 1, count + 1 do start[i] = start[i] + start[i - 1] end
  local from, fill = numbers(total + 1), numbers(count + 2)
  for i = 1, count do
    local v = node[i]
    for e = first[v], first[v + 1] - 1 do
      local w = number[to[e]]
      from[start[w] + fill[w]] = i
      fill[w] = fill[w] + 1
    end
  end
  free(fill)
  return start, from
end

-- Returns by number the number of the dominator.
local function immediate(count, parent, start, from)
  local semi, label, ancestor, dom = numbers(count + 1), numbers(count + 1), numbers(count + 1), numbers(count + 1)
  local bucket, next_in, path = numbers(count + 1), numbers(count + 1), numbers(count + 1)
  for i = 1, count do semi[i], label[i] = i, i end

  local function eval(v)
    if ancestor[v] == 0 then return v end
    local n, u = 0, v
    while ancestor[ancestor[u]] ~= 0 do
      path[n] = u
      n, u = n + 1, ancestor[u]
    end
    for k = n - 1, 0, -1 do
      local x = path[k]
      local a = ancestor[x]
      if semi[label[a]] < semi[label[x]] then label[x] = label[a] end
      ancestor[x] = ancestor[a]
    end
    return label[v]
  end

  for w = count, 2, -1 do
    local p = parent[w]
    for e = start[w], start[w + 1] - 1 do
      local u = eval(from[e])
      if semi[u] < semi[w] then semi[w] = semi[u] end
    end
    local s = semi[w]
    next_in[w], bucket[s] = bucket[s], w
    ancestor[w] = p
    local v = bucket[p]
    while v ~= 0 do
      local u = eval(v)
      dom[v] = semi[u] < semi[v] and u or p
      v = next_in[v]
    end
    bucket[p] = 0
  end
  for w = 2, count do
    if dom[w] ~= semi[w] then dom[w] = dom[dom[w]] end
  end
  free(semi, label, ancestor, bucket, next_in, path)
  return dom
end

-- Returns { retained=, number= }: arrays by node. retained adds up the sizes of all nodes that a node dominates, and
-- its own. Nodes that are not reached have 0 in both.
function dominators.of(n, first, to, size)
  local number, node, parent, count = search(n, first, to)
  local start, from = reversed(count, node, number, first, to)
  local dom = immediate(count, parent, start, from)
  local retained = array.zeros(DOUBLES, n)
  for i = 1, count do retained[node[i]] = size[node[i]] end
  for i = count, 2, -1 do
    local v, d = node[i], node[dom[i]]
    retained[d] = retained[d] + retained[v]
  end
  free(node, parent, start, from, dom)
  return { retained = retained, number = number }
end

-- Returns by node the node before it on a shortest way from the root, and itself if it is not reached. Of equally short
-- ways it is the first one in the order of edges.
function dominators.nearest(n, first, to)
  local before, queue = numbers(n), numbers(n)
  for i = 0, n - 1 do before[i] = i end
  local head, tail = 0, 1
  while head < tail do
    local v = queue[head]
    head = head + 1
    for e = first[v], first[v + 1] - 1 do
      local w = to[e]
      if w ~= 0 and before[w] == w then
	before[w], queue[tail] = v, w
	tail = tail + 1
      end
    end
  end
  free(queue)
  return before
end

return dominators
