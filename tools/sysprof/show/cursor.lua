----------------------------------------------------------------------------
-- Cursor in a tree of stacks: moves from the node of one stack to the node of the next.
--
-- Consecutive stacks share most of their outer frames. The cursor keeps the path to the last
-- stack, and looks up only the frames behind the common prefix.
----------------------------------------------------------------------------

local cursor = {}

-- child(node, frame, depth) returns the node of a frame below a node, always the same one, or
-- nil without room. The frame at the root has depth 1.
--
-- Returns a function go(stack, n). It returns the node that child() gives for frame after
-- frame of stack[1..n] from the root on, or nil without room.
function cursor.new(root, child)
  -- frames[1..depth] is the path to the last stack, nodes[i] the node of its first i frames.
  local frames, nodes, depth = {}, { [0] = root }, 0
  return function(stack, n)
    local same = 0
    while same < n and same < depth and frames[same + 1] == stack[same + 1] do
      same = same + 1
    end
    local node = nodes[same]
    depth = same
    for i = same + 1, n do
      local frame = stack[i]
      node = child(node, frame, i)
      if not node then return nil end
      frames[i], nodes[i], depth = frame, node, i
    end
    return node
  end
end

return cursor
