-- The file tells the command line, cut where it is long, and the host.

local t = require("tools_test")
local reader = require("sysprof.read.reader")

-- Returns what a program says of itself that gets these arguments.
local function meta_of(arguments)
  t.write_file("program.lua", 'assert(misc.sysprof.start({ mode = "C", path = "out.bin" })) assert(misc.sysprof.stop())')
  t.equal(t.shell(("'%s' program.lua %s"):format(t.luajit, arguments)), 0, "program")
  return assert(reader.parse_string(t.read_file("out.bin"))).meta
end

local meta = meta_of("one 'two words' '' last")
t.equal(meta.command, t.luajit .. " program.lua one two words  last", "command line")
t.equal(meta.host, (t.read_file("/proc/sys/kernel/hostname"):gsub("\n", "")), "host")

local long = ("x"):rep(300)
t.equal(meta_of(long .. " last").command, ("%s program.lua %s... last"):format(t.luajit, long:sub(1, 253)),
	"a long argument")
local many = ("word "):rep(2000)
local cut = meta_of(many).command
t.equal(cut, (t.luajit .. " program.lua " .. many):sub(1, 4096 - 3) .. "...", "a long command line")

t.finish()
