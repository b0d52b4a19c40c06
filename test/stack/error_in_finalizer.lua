-- A finalizer that fails: the error ends with it. Newer LuaJITs then call error_finalizer
-- of luajit.c by the event ERRFIN, which prints it.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function finalize()
  leaf(300)			-- @work
  error("thrown")		-- @throw
end

local template = newproxy(true)
getmetatable(template).__gc = finalize

local function collect()
  collectgarbage()		-- @collect
end

local function body()
  newproxy(template)		-- @make
  pcall(collect)		-- @call
  leaf(300)			-- @after
end

-- Only the body collects.
collectgarbage("stop")

local COLLECT = "body@call pcall collect@collect collectgarbage"

scenario.run({
  body = body,
  seen = { COLLECT .. " [C] finalize@work leaf", "body@after leaf" },
  also = { "body", "body@make newproxy", "body@call pcall",
	   "body@call pcall collect", COLLECT, COLLECT .. " [C] finalize",
	   COLLECT .. " [C] finalize@throw error", COLLECT .. " [C] C:error_finalizer" },
})
