# A tracer makes each signal many times slower. A program that strace starts measures that, and
# goes on under fast clocks.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

strace -o trace.out true 2>/dev/null || {
  echo "skipped: strace cannot trace here"
  exit 77
}

cat >program.lua <<'END'
local ok, err = misc.sysprof.start { mode = "C", clock = arg[1], hz = 100000, path = arg[1] .. ".bin" }
if not ok then print(err) os.exit(77) end
local x = 0
for i = 1, 3e7 do x = x + i % 7 end
print(misc.sysprof.report().samples > 0 and "sampled" or "no samples")
END

for clock in wall-signal task-clock:u; do
  timeout 300 strace -f -o trace.out "$LUAJIT" program.lua "$clock" >out 2>&1
  case $?,$(cat out) in
  0,sampled) ;;
  77,*) echo "left out $clock: $(cat out)" ;;
  *) fail "$clock: the traced program did not reach its end: $(cat out)" ;;
  esac
done
exit $status
