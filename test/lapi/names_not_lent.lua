-- TIMEOUT: 600
-- A freed function keeps its name for itself. The next function in its place in memory does
-- not get it, not even one of the same chunk, lines and size.

local t = require("tools_test")
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local sysprof = misc.sysprof

jit.off()

local function leaf()
  local s = 0
  for i = 1, 400 do s = s + i % 7 end
  return s
end

-- Functions with unique names, so that a stack identifies them.
function spin_a() return leaf(), 1 end
function spin_b() return leaf(), 1 end

-- Runs a function that is garbage afterwards, from a chunk that is, too.
local addresses, reused = {}, 0
local function short_life(letter)
  local code = "function temp_x() local s = spin_x() return s end temp_x()"
  load(code:gsub("x", letter), "=same")()
  local name = "temp_" .. letter
  local address = tostring(_G[name]):match("0x%x+")
  if addresses[address] then reused = reused + 1 end
  addresses[address] = true
  _G[name] = nil
  collectgarbage()
end

local wrong, right, total = 0, 0, 0

-- Counts the stacks in which temp_a calls spin_b, or the other way.
local function look(p)
  local all = p.stacks
  local names = {}
  for i = 1, p.slots:count() do
    local n = all:list(p.slots[i].lua, names)
    for k = 1, n - 1 do
      local f, g = p.lfuncs[all.payload[names[k]]], p.lfuncs[all.payload[names[k + 1]]]
      local lua = all.kind[names[k]] == G.SPF_FRAME_LFUNC and
		  all.kind[names[k + 1]] == G.SPF_FRAME_LFUNC
      local letter = lua and g.name:match("^spin_(%l)$")
      if letter and f.chunk == "=same" and f.firstline > 0 then
	total = total + 1
	if f.name == "temp_" .. letter then right = right + 1
	elseif f.name ~= "" then wrong = wrong + 1 end
      end
    end
  end
end

local deadline = os.clock() + 30
repeat
  assert(sysprof.start({ mode = "C", interval = 0.1, clock = "wall-signal", path = "lent.bin" }))
  repeat
    for _ = 1, 20 do short_life("a") short_life("b") end
  until sysprof.report().samples >= 1000 or os.clock() > deadline
  assert(sysprof.stop())
  look(assert(reader.read("lent.bin")))
until (right > 10 and reused > 100) or os.clock() > deadline

print(("%d stacks, %d named, %d wrong, memory reused %d times")
      :format(total, right, wrong, reused))
t.ok(reused > 10, "memory was used again")
t.ok(right > 0, "some were named")
t.equal(wrong, 0, "names of others")
t.finish()
