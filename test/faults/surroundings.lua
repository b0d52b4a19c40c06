-- The process loses its surroundings in mid-stream: root's rights, its root folder,
-- /proc, a writable file system, the mount point of that.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- LONG: 22

local faults = require("faults")
local shell_status = require("shell_status")

-- Shell code in front of the program, in a mount namespace of its own: first is done
-- before it, last behind it.
local function mounting(first, last)
  return ([[unshare --mount sh -c "%s && \"\$@\"; status=\$?; %s; exit \$status" sh env]]):format(first, last or ":")
end

-- Is it possible here? If not, prints the reason.
local function can(what, command)
  local ok = shell_status("LC_ALL=C " .. command .. " >message 2>&1") == 0
  if not ok then print(("not allowed here: %s: %s"):format(what, io.open("message"):read("*l"))) end
  return ok
end

-- -- Rights ------------------------------------------------------------------

-- As services do. The folder is for the profile that is next; a second one into a
-- shared file finds that it is root's.
if can("another user", "setpriv --reuid=65534 --regid=65534 --clear-groups true") then
  for _, scenario in ipairs { "wall", "cpu", "itimer", "task", "threads", "fork", "shared" } do
    faults.happens { title = "setuid to another user", scenario = scenario, before = "chmod 777 .;",
		     errno = scenario == "shared" and "EACCES" or nil, code = [[
      ffi.cdef "int setgroups(size_t n, const void *); int setgid(unsigned); int setuid(unsigned);"
      assert(C.setgroups(0, nil) == 0 and C.setgid(65534) == 0 and C.setuid(65534) == 0)]] }
  end
end

-- -- Folders -----------------------------------------------------------------

if can("chroot", "chroot / true") then
  for _, scenario in ipairs { "wall", "cpu", "task", "threads", "fork" } do
    faults.happens { title = "chroot to an empty folder", scenario = scenario, before = "mkdir -p empty;", code = [[
      ffi.cdef "int open(const char *, int, ...); int close(int);"
      ffi.cdef "int fchdir(int); int chdir(const char *); int chroot(const char *);"
      local DIRECTORY = 0x210000
      local root, here = C.open("/", DIRECTORY), C.open(".", DIRECTORY)
      assert(root >= 0 and here >= 0 and C.chroot("empty") == 0 and C.chdir("/") == 0)
      return function()
	assert(C.fchdir(root) == 0 and C.chroot(".") == 0 and C.fchdir(here) == 0)
	C.close(root)
	C.close(here)
      end]] }
  end
end

if can("mounting /proc", mounting("umount -l /proc && mount -t proc proc /proc") .. " true") then
  for _, scenario in ipairs { "wall", "cpu", "task", "threads", "fork" } do
    faults.happens { title = "/proc unmounted", scenario = scenario, before = mounting(":"), code = [[
      ffi.cdef "int umount2(const char *, int); int mount(const char *, const char *, const char *, long, void *);"
      assert(C.umount2("/proc", 2) == 0 and not io.open("/proc/self/maps"))
      return function() assert(C.mount("proc", "/proc", "proc", 0, nil) == 0) end]] }
  end
end

-- -- File systems ------------------------------------------------------------

local PLACES = "mkdir -p fs seen && mount -t tmpfs none fs && mount --bind fs seen"
if can("mounting", mounting(PLACES) .. " true") then
  for _, scenario in ipairs { "wall", "threads" } do
    faults.happens { title = "file system unmounted", scenario = scenario, path = "fs/p.bin",
		     before = mounting(PLACES, "cp seen/p.bin ."),
		     code = [[assert(require("shell_status")("umount -l fs") == 0)]] }
    faults.happens { title = "file system remounted read-only, which the kernel refuses", scenario = scenario,
		     path = "fs/p.bin", before = mounting(PLACES, "cp seen/p.bin ."),
		     code = [[assert(require("shell_status")("mount -o remount,ro seen 2>/dev/null") ~= 0)]] }
  end
end

-- In one in which the kernel has found an error, also the files that are open are
-- read-only.
local IMAGE = "mkdir -p fs && rm -f image && truncate -s 8M image && mkfs.ext4 -q image && " ..
	      "mount -o loop,errors=remount-ro image fs"
local ERROR = "echo 1 >/sys/fs/ext4/$(basename $(findmnt -n -o SOURCE fs))/trigger_fs_error"
local TRY = mounting(IMAGE) .. " sh -c 'exec 5>fs/file && " .. ERROR .. "; /bin/echo 2>&1 >&5 | grep Read-only'"
if can("ext4 in a file", TRY) then
  for _, scenario in ipairs { "wall", "threads" } do
    faults.happens { title = "file system read-only after an error", scenario = scenario, errno = "EROFS",
		     path = "fs/p.bin", before = mounting(IMAGE, "cp fs/p.bin ."),
		     code = ([[assert(require("shell_status")("%s") == 0)]]):format(ERROR) }
  end
end
faults.finish()
