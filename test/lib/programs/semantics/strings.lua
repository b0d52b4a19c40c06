-- Strings, patterns and their callbacks, buffers, bytecode.

return function(T)
  local area, out, is = T.area, T.out, T.is

  area("strings", function()
    is("rep", ("ab"):rep(3, "-"), "ab-ab-ab")
    is("sub", ("hello"):sub(-3, -2), "ll")
    is("reverse", ("abc"):reverse(), "cba")
    is("upper", ("aBc"):upper() .. ("aBc"):lower(), "ABCabc")
    is("byte", select("#", ("hello"):byte(2, 4)), 3)
    is("char", string.char(72, 105, 0, 255), "Hi\0\255")
    is("compare", "a" < "b" and "a\0b" > "a\0a" and not ("Z" > "a"), true)
    is("len", #"\0\0\0", 3)
    is("concat of numbers", 1 .. 2.5 .. "x", "12.5x")
    out(("%q"):format('a "quoted"\n\\ \0 \r line'))
    out(("%s %10s %-10s| %.2s %c"):format("x", "right", "left", "cut", 65))
    out(pcall(string.format, "%d", "x"))
    out(pcall(string.format, "%y", 1))
    out(pcall(string.rep))
    -- Strings that grow, in compiled code.
    local s, h = "", 0
    for i = 1, 300 do
      s = s .. string.char(97 + i % 26)
      h = (h * 33 + s:byte(-1)) % 65521
      if #s > 60 then s = s:sub(30) end
    end
    out(s, h)
    local parts = {}
    for i = 1, 200 do parts[i] = ("%03d"):format(i % 50) end
    local all = table.concat(parts, ",", 10, 150)
    out(#all, all:sub(1, 20), all:sub(-20))
    out(pcall(table.concat, { 1, {}, 3 }))
  end)

  area("patterns", function()
    out(("key = value"):match("^(%w+)%s*=%s*(%w+)$"))
    out(("f(a(b)c)d"):match("%b()"), ("THE (quick) fox"):find("%((%a+)%)"))
    out(("hello world"):find("o w"), ("hello"):find("l", 1, true), ("x"):find("", 5))
    out(("THE quick"):gsub("%f[%a]%a+", "<%0>"))
    out(("abc"):gsub("", "-"), ("abc"):gsub("%w", "%%%0", 2))
    out(("$a $b $c"):gsub("%$(%w+)", { a = 1, b = false }))
    out(("abc"):gsub("(a)(b)", "%2%1"), ("a.b"):gsub("%.", "%%"))
    out(pcall(string.gsub, "abc", "(", "x"))
    out(pcall(string.gsub, "abc", "%w", "%9"))
    out(pcall(string.find, "abc", "[a"))
    out(pcall(string.rep, "x", -1))
    out(("  trim  "):match("^%s*(.-)%s*$"), ("a,b,,c"):gsub(",", ";"))
    local seen = {}
    for k, v in ("a=1, b=2, c=3"):gmatch("(%w+)=(%w+)") do seen[#seen + 1] = k .. v end
    out(unpack(seen))
    for at in ("abc"):gmatch("()") do out(at) end
    -- Callbacks that call back, yield, count and throw.
    local depth = 0
    local function nest(text)
      depth = depth + 1
      if depth > 40 then return text end
      return (text:gsub("%d", function(d) return nest(d) .. "." end))
    end
    is("nested callbacks", #nest("1"), 41)
    local n = 0
    local function visit(c) n = n + 1; if c == "x" then error("met x", 0) end end
    out(pcall(string.gsub, "abcxdef", "%w", visit))
    is("calls before the error", n, 4)
    out(pcall(coroutine.wrap(function()
      return (("abc"):gsub("%w", function(c) coroutine.yield(c) end))
    end)))
    local total = 0
    for i = 1, 120 do
      local text = ("%d:%d"):format(i, i * i)
      text = text:gsub("%d+", function(d) return tonumber(d) + 1 end)
      total = total + #text
    end
    is("callbacks in a loop", total, 833)
  end)

  area("bytecode", function()
    local source = [[
      local up = 3
      local function f(a, b, ...)
	local list = { a, b, 1.5, "text", nil, true }
	for i = 1, #list do up = up + i end
	return up, list[4], select("#", ...)
      end
      return f(10, 20, nil, nil)
    ]]
    local f = assert(loadstring(source, "=dumped"))
    out(f())
    local code = string.dump(f)
    local stripped = string.dump(f, true)
    out(loadstring(code, "dumped again")())
    out(assert(load(stripped, "stripped", "b"))())
    is("dump of the loaded", string.dump(loadstring(code)) == code, true)
    is("and again", string.dump(loadstring(stripped), true) == stripped, true)
    local sum = 0
    for i = 1, #code do sum = (sum * 31 + code:byte(i)) % 1000003 end
    out(#code, sum)
    out(load(code, "x", "t"))
    out(loadstring(code:sub(1, 20)))
    out(pcall(string.dump, print))
    out(loadstring("return +"))
    out(loadstring("x = = 1", "=name"))
    out(loadstring("goto nowhere", "=name"))
    out(loadstring("for i = 1 do end", "=name"))
    out(loadstring("local x = 'open", "=name"))
    out(loadstring(("x = 1\n"):rep(70) .. "break", "@file.lua"))
    local pieces, i = { "return ", "1 ", "+ ", "41" }, 0
    is("load by pieces", load(function() i = i + 1; return pieces[i] end)(), 42)
    out(load(function() error("in the reader", 0) end))
    local env = { y = 5 }
    is("setfenv", setfenv(loadstring("x = y * 2; return x"), env)() + env.x, 20)
    is("load env", load("return y", "c", "t", env)(), 5)
    -- Many functions, compiled by the parser and collected.
    local n = 0
    for k = 1, 150 do
      local text = ("local a = ... return function(b) return a + b * %d end"):format(k)
      n = n + loadstring(text)(k)(2)
    end
    is("many chunks", n, 33975)
  end)

  area("buffers", function()
    local ok, buffer = pcall(require, "string.buffer")
    if not ok then return out("no string.buffer") end
    local b = buffer.new()
    for i = 1, 200 do b:putf("%d,", i):put(i % 7, ";") end
    out(#b, b:get(10), b:skip(5):get(5), #b:tostring())
    b:reset():set("abc")
    out(b:tostring(), #b, tostring(b .. "d"))
    local data = { 1, 2.5, "text", true, { nested = { 7 } }, -0.0 }
    local back = buffer.decode(buffer.encode(data))
    out(back[1], back[2], back[3], back[4], back[5].nested[1], back[6])
    out(pcall(buffer.decode, "\255"))
    out(pcall(buffer.encode, print))
  end)
end
