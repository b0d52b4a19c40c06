-- One program of etc/bench/accuracy, or the summary of all:
--
--   accuracy.lua                       prints the names of the programs
--   accuracy.lua NAME SAMPLES CLOCK    runs one, prints its table and appends
--                                      a line to "result"
--   accuracy.lua summary FILE          adds up the lines of FILE
--
-- An order is exact if the parts by profile are in the order of their costs.

local accuracy = require("accuracy")
local programs = require("accuracy_programs")

local Z_MAX = 3
-- Share of a normal distribution outside of Z_MAX standard errors.
local OUTSIDE = 0.0027

local function order_exact(result)
  for _, a in ipairs(result) do
    for _, b in ipairs(result) do
      if a.built < b.built and a.share >= b.share then return false end
    end
  end
  return true
end

local function run(name, samples, clock)
  io.stdout:setvbuf("line")
  local r = accuracy.measure(name, samples, clock)
  local outside, z2 = 0, 0
  for _, part in ipairs(r) do
    if not (math.abs(part.z) <= Z_MAX) then outside = outside + 1 end
    z2 = z2 + part.z * part.z
  end
  local exact = order_exact(r)
  print(("%s: %s"):format(name, programs.TITLES[name]))
  accuracy.print(r)
  print(("order %s; outside of 3 s.e.: %d of %d; mean z^2 %.2f; samples elsewhere: %d; " ..
	 "CPU time - weights: at most %.2f ms of a profile"):format(
    exact and "exact" or "NOT exact", outside, #r, z2 / #r, r.elsewhere,
    r.missing_us / 1e3))
  if r.wrong then print("WRONG: " .. r.wrong) end
  print()
  local file = assert(io.open("result", "a"))
  file:write(("%d %d %d %d %.17g\n"):format(#r, outside, exact and 1 or 0, r.samples, z2))
  file:close()
  return not r.wrong
end

local function summary(path)
  local ran, shares, outside, exact, samples, z2 = 0, 0, 0, 0, 0, 0
  for line in io.lines(path) do
    local n, out, ok, count, z = line:match("(%S+) (%S+) (%S+) (%S+) (%S+)")
    ran, shares, outside = ran + 1, shares + n, outside + out
    exact, samples, z2 = exact + ok, samples + count, z2 + z
  end
  print(("%d programs, %d samples, %d shares"):format(ran, samples, shares))
  print(("outside of 3 s.e.: %d, by chance %.2f are expected"):format(outside,
    shares * OUTSIDE))
  print(("order exact: %d of %d; mean z^2 of all shares: %.2f"):format(exact, ran,
    z2 / shares))
end

if arg[1] == "summary" then
  summary(arg[2])
elseif arg[1] then
  os.exit(run(arg[1], assert(tonumber(arg[2])), arg[3]) and 0 or 1)
else
  print(table.concat(programs.NAMES, " "))
end
