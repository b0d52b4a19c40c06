# A program that ends without stop() leaves a complete file, however it ends.
# TIMEOUT: 900
# LONG: 10

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
rm -rf ./*

# ends NAME STATUS CODE: a program that ends by CODE, interpreted and compiled, with few and
# with many samples.
ends() {
  local name=$1 expected=$2 code=$3 mode interval file
  for mode in off on; do
    for interval in 1 0.1; do
      case $name,$mode,$interval in
      return,*) ;;
      *,off,0.1 | *,on,1) continue ;; # How it ends depends on one of them at most.
      esac
      file=$name.$mode.$interval.bin
      cat >program.lua <<LUA
local sort = require("workloads").by_name("sort")
jit.$mode()
assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", interval = $interval, path = "$file" }))
for i = 1, 4 do sort.run(1) end
$code
LUA
      "$LUAJIT" program.lua 2>stderr
      result=$?
      [ $result = "$expected" ] ||
        fail "$file: status $result, not $expected: $(cat stderr)"
      "$SYSPROF_BUILD/bin/luajit-parse-sysprof" "$file" >folded 2>message ||
        fail "$file: status $? of the reader: $(cat message)"
      grep -q 'table.sort' folded || fail "$file: no samples of the program"
    done
  done
}

ends return 0 'do return end'
ends os_exit 7 'os.exit(7)'
ends os_exit_close 8 'os.exit(8, true)'
ends error 1 'error("not caught")'
ends exit_in_coroutine 9 'coroutine.wrap(function() pcall(os.exit, 9) end)()'
ends exit_in_callback 5 'table.sort({ 1, 2, 3 }, function() os.exit(5) end)'
ends exit_by_c 6 'local ffi = require("ffi") ffi.cdef("void exit(int)") ffi.C.exit(6)'
ends exit_in_gc 4 'local p = newproxy(true) getmetatable(p).__gc = function() os.exit(4) end p = nil collectgarbage()'
exit $status
