-- Arithmetic, conversions, loops and bits.

local bit = require("bit")

return function(T)
  local area, out, is = T.area, T.out, T.is

  area("arithmetic", function()
    local huge, nan = 1 / 0, 0 / 0
    is("5 % 3", 5 % 3, 2)
    is("-5 % 3", -5 % 3, 1)
    is("5 % -3", 5 % -3, -1)
    is("5.5 % 2", 5.5 % 2, 1.5)
    is("1 % huge", 1 % huge, nan)
    is("2^10", 2 ^ 10, 1024)
    is("2^-1", 2 ^ -1, 0.5)
    is("(-8)^(1/3)", (-8) ^ (1 / 3), nan)
    is("nan == nan", nan == nan, false)
    is("1/(-1/huge)", 1 / (-1 / huge), -huge)	-- Where numbers are dual, -0 is the integer.
    is("'10' + 5", "10" + 5, 15)
    is("'0x10' * 2", "0x10" * 2, 32)
    is("floor", math.floor(-3.5), -4)
    is("ceil", math.ceil(-3.5), -3)
    is("fmod", math.fmod(-5, 3), -2)
    is("max", math.max(1, "7", 3), 7)
    is("2^53", 2 ^ 53 + 1, 2 ^ 53)
    out(math.frexp(10.5))
    out(math.modf(-3.25), math.ldexp(0.75, 5), math.sqrt(2), math.exp(1))
    -- Loops of all kinds of numbers, long enough to be compiled.
    local sum, product, int = 0, 1, 0
    for i = 1, 300 do
      sum = sum + i / 3
      product = (product * 1.0001) % 17
      int = (int * 31 + i) % 1000003
    end
    out(sum, product, int)
    local over = 2147483600
    for _ = 1, 200 do over = over + 1 end
    is("no overflow", over, 2147483800)
    local under = -2147483600
    for _ = 1, 200 do under = under - 1 end
    is("no underflow", under, -2147483800)
    local fact = 1
    for i = 1, 25 do fact = fact * i end
    is("25!", fact, 1.5511210043330986e+25)
  end)

  area("loops", function()
    local function count(a, b, step)
      local n, last = 0, nil
      for i = a, b, step do n, last = n + 1, i end
      return n, last
    end
    out(count(1, 200, 1))
    out(count(200, 1, -1))
    out(count(1, 0, 1))
    out(count(0.1, 20, 0.1))
    out(count(1, 2, 0.0625))
    out(count(2147483600, 2147483700, 1))
    out(count(-2147483600, -2147483700, -1))
    out(pcall(function() for i = 1, {} do out(i) end end))
    out(pcall(function() for i = "x", 2 do out(i) end end))
    local n, i = 0, 0
    while true do
      i = i + 1
      if i > 500 then break end
      if i % 3 == 0 then goto continue end
      n = n + i
      ::continue::
    end
    is("goto continue", n, 83667)
    local k = 0
    repeat local done = k >= 150; k = k + 1 until done
    is("repeat", k, 151)
    do
      local tries = 0
      ::again::
      tries = tries + 1
      if tries < 120 then goto again end
      is("goto back", tries, 120)
    end
    local closures = {}
    for j = 1, 5 do closures[j] = function() j = j + 1; return j end end
    is("a variable of each turn", closures[2]() + closures[2]() + closures[5](), 13)
  end)

  area("number text", function()
    for _, x in ipairs({ 0, -0.0, 1, -1, 1e15, 1e16, 123456789012, 0.1, 1 / 3, 1e100,
			 2 ^ 31, 2 ^ 53, 5e-324, 1.7976931348623157e308, 1 / 0 }) do
      out(tostring(x), ("%.3f %g %e %d"):format(x % 1e9, x, x, x % 1000))
    end
    out(("%5d|%-5d|%05d|%+d|%x|%X|%o|%#x"):format(42, 42, 42, 42, 255, 255, 8, 255))
    out(("%a"):format(0.5), ("%5.1f|%-8.3f|%.0f"):format(3.14159, 2.5, 0.5))
    for _, s in ipairs({ "10", "0x1p4", " 12 ", "1e2", "1e", "", "0x", "1 2", "nan",
			 "inf", "1e400", "-0x10" }) do
      out(s, tonumber(s))
    end
    for base = 2, 36, 2 do out(tonumber("101", base), tonumber("z", base)) end
    is("tonumber ff", tonumber("ff", 16), 255)
    local text, back = {}, true
    for i = 1, 200 do
      local x = i / 7
      text[#text + 1] = tostring(x)
      back = back and tonumber(("%.17g"):format(x)) == x
    end
    is("round trip", back, true)
    out(#table.concat(text, ","))
  end)

  area("bits", function()
    is("band", bit.band(0xff00ff, 0x0ff0f0), 0x0f00f0)
    is("bor", bit.bor(1, 2, 4, 8), 15)
    is("bxor", bit.bxor(0xa5a5f0f0, 0xaa55ff00), 0x0ff00ff0)
    is("bnot", bit.bnot(0), -1)
    is("lshift", bit.lshift(1, 31), -2147483648)
    is("rshift", bit.rshift(-1, 28), 15)
    is("arshift", bit.arshift(-256, 4), -16)
    is("rol", bit.rol(0x12345678, 12), 0x45678123)
    is("bswap", bit.bswap(0x78563412), 0x12345678)
    is("tohex", bit.tohex(-1, -4), "FFFF")
    is("tobit", bit.tobit(2 ^ 32 + 5), 5)
    -- xorshift and a checksum, compiled.
    local x, crc = 2463534242, -1
    for _ = 1, 300 do
      x = bit.bxor(x, bit.lshift(x, 13))
      x = bit.bxor(x, bit.rshift(x, 17))
      x = bit.bxor(x, bit.lshift(x, 5))
      crc = bit.bxor(crc, bit.band(x, 255))
      for _ = 1, 8 do
	local low = bit.band(crc, 1)
	crc = bit.bxor(bit.rshift(crc, 1), bit.band(0xedb88320, -low))
      end
    end
    out(x, crc)
    out(pcall(bit.band, "x"))
    math.randomseed(42)
    local list = {}
    for i = 1, 10 do list[i] = math.random(1000) end
    out(unpack(list))
    out(pcall(math.random, 2, 1))
  end)
end
