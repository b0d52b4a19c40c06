-- A profile from an untrusted source: its names make the reader run nothing, and open
-- only regular files that fit.
-- BASE: none, it reads no profile of this LuaJIT
-- LONG: 15

local t = require("tools_test")
local E = require("elf_files")
local ffi = require("ffi")
ffi.cdef [[
int inotify_init1(int);
int inotify_add_watch(int, const char *, uint32_t);
ssize_t read(int, void *, size_t);
]]

E.needs("g++", "nm", "readelf")
local IN_OPEN, IN_NONBLOCK = 0x20, 0x800

E.run("rm -rf box && mkdir box")
E.make("box/libx.so")
local addr = E.addresses("box/libx.so")
local id = E.buildid("box/libx.so")
local _, here = t.shell("pwd")
here = here:gsub("\n", "")

-- The kernel reports the files that the reader opens in the folder box.
local watch = ffi.C.inotify_init1(IN_NONBLOCK)
if watch < 0 or ffi.C.inotify_add_watch(watch, "box", IN_OPEN) < 0 then
  print("skipped: no inotify")
  os.exit(77)
end
local event_ptr = ffi.typeof [[const struct { int wd; uint32_t mask, cookie, len; char name[1]; } *]]

-- Names that were opened since the last call.
local function opened()
  local names, buf = {}, ffi.new("uint8_t[65536]")
  local n = tonumber(ffi.C.read(watch, buf, 65536))
  local at = 0
  while at < n do
    local e = ffi.cast(event_ptr, buf + at)
    if e.len > 0 then names[ffi.string(e.name)] = true end
    at = at + 16 + e.len
  end
  return names
end

local FORMATS = { "folded", "pprof" }

-- Reads a profile with a module of this path, from within the folder box.
local function read(path, format, options)
  t.write_file("p.bin", E.stream(path, id, { addr.plain }))
  opened()
  local status, out, err = t.shell(("cd box && timeout 60 %s --format=%s %s ../p.bin </dev/null")
				   :format(t.parser, format, options or ""))
  t.equal(status, 0, path .. ", " .. format .. ": " .. err)
  return out, opened()
end

-- The check can see something: a file that fits is opened, and named by.
local out, names = read(here .. "/box/libx.so", "folded")
t.equal(out, "plain 1\n", "a file that fits")
t.ok(names["libx.so"], "a file that fits is opened")

E.run([[cd box && mkfifo fifo && ln -s /dev/tty tty && ln -s /dev/zero zero && ln -s fifo link &&
  mkdir sub && : >empty && ln -s loop loop]])
for _, name in ipairs { "fifo", "tty", "zero", "link", "sub", "empty", "loop" } do
  for _, path in ipairs { here .. "/box/" .. name, name, "../box/" .. name, "sub/../" .. name } do
    for _, format in ipairs(FORMATS) do
      out, names = read(path, format)
      t.ok(not names[name] and not names.fifo, path .. ": not opened")
    end
    t.contains(read(path, "folded"), name .. "+0x", path .. ": has no name")
  end
  -- The folder of the user's own choice has something of this name.
  for _, options in ipairs { "--symbols=.", "--symbols=sub/.. --symbols=." } do
    out, names = read("/gone/" .. name, "folded", options)
    t.ok(not names[name] and not names.fifo, name .. ", " .. options .. ": not opened")
  end
end

for _, path in ipairs { "/dev/tty", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/kmsg",
			"/proc/self/fd/0", ("../"):rep(20) .. "dev/tty", ("../"):rep(20) .. "etc/passwd" } do
  for _, format in ipairs(FORMATS) do read(path, format) end
end

-- What a shell would run.
for _, path in ipairs { "$(touch ran)", "`touch ran`", "; touch ran;", "|touch ran", "a\ntouch ran\n",
			"'; touch ran; '", '"; touch ran; "', "&& touch ran", "-o ran", "--output=ran",
			"x' -o 'ran", "%s%n", "libx.so\ntouch ran" } do
  for _, format in ipairs(FORMATS) do
    read(path, format)
    read("/gone/" .. path, format, "--symbols=.")
  end
end
t.equal(io.open("box/ran"), nil, "nothing is run, no file is written")
t.equal(io.open("ran"), nil, "nothing is run, no file is written")
t.finish()
