-- An error raised five calls below the pcall that catches it. On its way another pcall
-- catches it and raises it again.

local scenario = require("scenario")

local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function down(n)
  leaf(60)			-- @work
  if n == 1 then
    error("thrown")		-- @throw
  end
  down(n - 1)			-- @down
  return n
end

local function again()
  local ok, message = pcall(down, 5)	-- @inner
  leaf(60)			-- @caught
  error(message, 0)		-- @again
end

local function body()
  for _ = 1, 10 do
    pcall(again)		-- @outer
    leaf(60)			-- @after
  end
end

scenario.run({
  body = body,
  seen = { "body@outer pcall again@inner pcall down@work leaf",
	   "body@outer pcall again@inner pcall down@down{4} down@work leaf",
	   "body@outer pcall again@caught leaf", "body@after leaf" },
  also = { "body", "body@outer pcall", "body@outer pcall again",
	   "body@outer pcall again@inner pcall",
	   "body@outer pcall again@inner pcall down",
	   "body@outer pcall again@inner pcall down@down down",
	   "body@outer pcall again@inner pcall down@down{2} down",
	   "body@outer pcall again@inner pcall down@down{3} down",
	   "body@outer pcall again@inner pcall down@down{4} down",
	   "body@outer pcall again@inner pcall down@down down@work leaf",
	   "body@outer pcall again@inner pcall down@down{2} down@work leaf",
	   "body@outer pcall again@inner pcall down@down{3} down@work leaf",
	   "body@outer pcall again@inner pcall down@down{4} down@throw error",
	   "body@outer pcall again@again error" },
})
