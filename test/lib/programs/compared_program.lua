-- Program for comparisons: 200 functions that compute. Usage: compared_program.lua ROUNDS [FUNCTION FACTOR]
--
-- FUNCTION, a number, or "all", takes FACTOR times as long. The functions 1 and 2 have a quarter of the time each, the next ten
-- 4 % each.

local FUNCTIONS = 200
local BIG, MIDDLE = 2, 12	-- Up to these numbers.
local BIG_TURNS, MIDDLE_TURNS, TURNS = 47000, 7500, 100

local rounds, which, factor = tonumber(arg[1]), arg[2], tonumber(arg[3] or 1)

local lines = {}
for i = 1, FUNCTIONS do	-- In line i.
  lines[i] = ("%slist[%d] = function(n) local s = %d for i = 1, n do s = s + sin(i) * %d end return s end")
	     :format(i == 1 and "local sin, list = math.sin, {} " or "", i, i, i)
end
local list = assert(load(table.concat(lines, "\n") .. " return list", "=work"))()

local sum = 0
for _ = 1, rounds do
  for i = 1, FUNCTIONS do
    local n = i <= BIG and BIG_TURNS or i <= MIDDLE and MIDDLE_TURNS or TURNS
    sum = sum + list[i]((which == "all" or tonumber(which) == i) and math.floor(n * factor) or n)
  end
end
print(sum)
