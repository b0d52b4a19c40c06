----------------------------------------------------------------------------
-- Streams of a few bytes that stand for many deep stacks.
----------------------------------------------------------------------------

local B = require("stream_builder")
local F = B.F

local deep = {}

-- Returns a stream: n stacks of depth frames, that differ in their leaf; or, with
-- roots, in their root on the host side.
function deep.stream_of(depth, n, roots)
  local b = B.new():context():lfunc(1, 1, "@f.lua", "f"):lfunc(2, 2, "@f.lua", "g")
  local frames = { F.cbound }
  for i = 2, depth - 1 do frames[i] = F.lfunc(1 + i % 2, 3) end
  b:stack(1, frames):stack(2, { F.vm })
  for i = 1, n do
    if roots then
      b:stack(2 + i, { F.host(i * 16), F.vm }, 0):sample(1, 2 + i)
    else
      b:stack(2 + i, { F.lfunc(2, i) }, depth - 1, 1):sample(2 + i, 2)
    end
  end
  return b:finish()
end

return deep
