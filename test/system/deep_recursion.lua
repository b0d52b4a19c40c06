-- Survives a Lua stack that grows, moves and overflows during samples, down to 60,000 Lua
-- frames in nested coroutines.
-- TIMEOUT: 600

local function down(n)
  if n == 0 then return 0 end
  return 1 + down(n - 1)
end

local function wide(n, ...)
  if n == 0 then return select("#", ...) end
  return wide(n - 1, n, ...) + 1
end

-- A fresh coroutine begins with a small stack.
local function in_coroutine(f, ...)
  return select(2, coroutine.resume(coroutine.create(f), ...))
end

local function grow()
  local sum = 0
  for _ = 1, 20 do
    sum = sum + in_coroutine(down, 3000) + in_coroutine(wide, 100)
  end
  return sum
end

-- So many coroutines, each with so many frames below the next.
local function nest(coroutines, frames)
  local function dive(n)
    if n == 0 then
      return coroutines > 1 and nest(coroutines - 1, frames) or 0
    end
    return 1 + dive(n - 1)
  end
  return in_coroutine(dive, frames)
end

local function overflow()
  local function forever(n) return 1 + forever(n + 1) end
  local function through_pcall(n) return pcall(through_pcall, n + 1) end
  local count = 0
  for _ = 1, 2 do
    local ok, message = pcall(forever, 1)
    if not ok and message:find("stack overflow", 1, true) then count = count + 1 end
    ok, message = in_coroutine(function() return pcall(forever, 1) end)
    if ok == false then count = count + 1 end
    xpcall(forever, function(m) return forever(1) end, 1)
    through_pcall(1)
  end
  return count
end

local function frames_60000()
  return nest(5, 12000)
end

local works = { grow, overflow, frames_60000 }

-- A sample of so deep a stack can take longer than the interval: what must not
-- happen is that the program gets nowhere.
require("survive").run("recursion", function()
  local sum = 0
  for _, work in ipairs(works) do sum = sum * 7 + work() end
  return sum
end, { ["left out"] = true, ["stack is moving"] = true })
