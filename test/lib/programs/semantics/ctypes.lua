-- The FFI: types, 64 bit numbers, structures, C functions, callbacks.

local ok, ffi = pcall(require, "ffi")
local bit = require("bit")

if ok then
  pcall(ffi.cdef, [[
    typedef struct { int32_t x, y; double d; uint8_t bytes[8]; } semantics_point;
    typedef union { uint64_t u; double d; uint8_t b[8]; } semantics_bits;
    typedef struct semantics_node { struct semantics_node *next; int value; } semantics_node;
    enum semantics_colour { SEMANTICS_RED, SEMANTICS_GREEN = 5, SEMANTICS_BLUE };
    typedef struct { unsigned a:3, b:5; int c:10; } semantics_fields;
    size_t strlen(const char *s);
    int snprintf(char *s, size_t n, const char *format, ...);
    int close(int fd);
    void qsort(void *base, size_t n, size_t size, int (*compare)(const int *, const int *));
    double strtod(const char *s, char **end);
    int abs(int x);
  ]])
end

return function(T)
  local area, out, is = T.area, T.out, T.is
  if not ok then
    return area("ffi", function() out("no ffi") end)
  end

  area("ffi numbers", function()
    out(tostring(2LL ^ 40), tostring(-7LL / 2), tostring(-7LL % 3), tostring(5ULL - 6ULL))
    out(tostring(0x7fffffffffffffffLL + 1), tostring(2 ^ 53 + 0LL), tostring(1LL * 3.7))
    out(1LL == 1, 1LL < 2ULL, -1LL < 1ULL, tonumber(12345678901234LL))
    out(tostring(bit.lshift(1LL, 40)), tostring(bit.bxor(-1LL, 5ULL)), bit.tohex(0xdeadbeefcafeULL))
    local x, sum = 88172645463325252ULL, 0ULL
    for _ = 1, 300 do
      x = bit.bxor(x, bit.lshift(x, 13))
      x = bit.bxor(x, bit.rshift(x, 7))
      x = bit.bxor(x, bit.lshift(x, 17))
      sum = sum + x % 1000
    end
    out(tostring(x), tostring(sum))
    local fact = 1LL
    for i = 1, 20 do fact = fact * i end
    is("20!", tostring(fact), "2432902008176640000LL")
    out(tonumber(ffi.cast("int8_t", 200)), tonumber(ffi.cast("uint16_t", -1)),
	tostring(2i), tonumber(ffi.cast("float", 0.1)))
    out(pcall(function() return 1LL / 0LL ~= nil end) ~= nil, pcall(function() return 1LL .. {} end))
  end)

  area("ffi structures", function()
    local p = ffi.new("semantics_point", { 1, 2, 3.5, { 9, 8 } })
    out(p.x, p.y, p.d, p.bytes[1], p.bytes[7], ffi.sizeof(p), ffi.offsetof(p, "d"))
    local list = ffi.new("semantics_point[100]")
    for i = 0, 99 do
      list[i].x, list[i].y, list[i].d = i, -i, i / 3
      list[i].bytes[i % 8] = i
    end
    local x, y, d, b = 0, 0, 0, 0
    for i = 0, 99 do
      local q = list + i
      x, y, d, b = x + q.x, y + q.y, d + q.d, b + q.bytes[i % 8]
    end
    out(x, y, d, b)
    local u = ffi.new("semantics_bits", { d = 1.5 })
    out(tostring(u.u), u.b[7])
    local fields = ffi.new("semantics_fields", 7, 31, -5)
    fields.a = 12
    out(fields.a, fields.b, fields.c)
    local nodes, head = {}, nil
    for i = 1, 120 do
      local node = ffi.new("semantics_node")
      node.value, node.next, head = i, head, node
      nodes[i] = node
    end
    local n, at = 0, ffi.cast("semantics_node *", head)
    while at ~= nil do n = n + at.value; at = at.next end
    is("list", n, 7260)
    out(ffi.C.SEMANTICS_BLUE, tonumber(ffi.new("enum semantics_colour", "SEMANTICS_GREEN")))
    local V = ffi.metatype("struct { double x, y; }", {
      __add = function(a, c) return ffi.new(ffi.typeof(a), a.x + c.x, a.y + c.y) end,
      __len = function() return 2 end,
      __index = { norm = function(v) return v.x * v.x + v.y * v.y end },
      __tostring = function(v) return v.x .. "," .. v.y end,
      __call = function(v, k) return v.x * k end,
    })
    local v = V(0, 0)
    for i = 1, 150 do v = v + V(i, 1) end
    out(tostring(v), v:norm(), #v, v(2))
    out(ffi.string("abc\0def", 7), ffi.string(ffi.new("char[4]", "xyz")))
    local buffer = ffi.new("uint8_t[?]", 300)
    ffi.fill(buffer, 300, 7)
    ffi.copy(buffer, "hello", 5)
    out(buffer[0], buffer[5], buffer[299])
    out(pcall(function() return p.nothing end))
    out(pcall(ffi.new, "no_such_type"))
    out(pcall(ffi.cdef, "int ("))
    out(pcall(function() return ffi.C.no_such_symbol_at_all end) == false)
    out(ffi.istype("semantics_point", p), tostring(ffi.typeof("int[3]")))
  end)

  area("ffi calls", function()
    local C = ffi.C
    local n = 0
    for i = 1, 300 do n = n + tonumber(C.strlen(("x"):rep(i % 20))) + C.abs(-i) end
    is("calls", n, 48000)
    local buffer = ffi.new("char[64]")
    local length = C.snprintf(buffer, 64, "%d %s %.2f", ffi.new("int", 42), "text", 2.5)
    out(length, ffi.string(buffer))
    is("strtod", C.strtod("2.75x", nil), 2.75)
    -- errno stays the call's own, whatever comes between.
    local wrong = 0
    for i = 1, 300 do
      ffi.errno(0)
      if C.close(-1) ~= -1 then wrong = wrong + 1 end
      for _ = 1, i % 10 do wrong = wrong + 0 end
      if ffi.errno() ~= 9 then wrong = wrong + 1 end
    end
    is("errno", wrong, 0)
    out(pcall(C.abs, "x"))
    out(pcall(C.strlen))
  end)

  -- Compiled calls must not run callbacks.
  local function sort(list, size, compare)
    ffi.C.qsort(list, size, 4, compare)
  end
  jit.off(sort)

  area("ffi callbacks", function()
    local list, seed = ffi.new("int[80]"), 5
    for i = 0, 79 do seed = seed * 16807 % 2147483647; list[i] = seed % 1000 end
    local calls = 0
    local compare = ffi.cast("int (*)(const int *, const int *)", function(a, b)
      calls = calls + 1
      if calls % 50 == 0 then collectgarbage("step") end
      return a[0] - b[0]
    end)
    sort(list, 80, compare)
    local good = true
    for i = 1, 79 do good = good and list[i - 1] <= list[i] end
    is("sorted", good, true)
    out(calls)
    compare:set(function(a, b) return b[0] - a[0] end)
    sort(list, 80, compare)
    out(list[0] >= list[1], list[78] >= list[79])
    compare:free()
    out(pcall(compare.free, compare))
    local freed = 0
    for i = 1, 50 do
      local p = ffi.gc(ffi.new("int[1]", i), function(q) freed = freed + q[0] end)
      if i % 5 == 0 then ffi.gc(p, nil) end
    end
    collectgarbage()
    collectgarbage()
    -- The last one may still be in a register.
    out(freed >= 1000 - 49 and freed <= 1000)
  end)
end
