# A tracer makes each signal many times slower. If it attaches while a fast clock runs, the
# program goes on nevertheless: the clock becomes slower.

set -u
. "$SYSPROF_SOURCE/test/lib/check.sh"

strace true 2>/dev/null || {
  echo "skipped: strace cannot trace here"
  exit 77
}

cat >program.lua <<'END'
local clock, path = arg[1], arg[2]
local ok, err = misc.sysprof.start { mode = "C", clock = clock, hz = 100000, path = clock .. ".bin" }
if not ok then print(err) os.exit(77) end
for i = 1, 1000000 do
  local x = 0
  for k = 1, 2000 do x = x + k % 7 end
  local f = io.open(path, "w")  -- Each step.
  f:write(i, "\n")
  f:close()
end
END

# Wait until the program has gone on by some steps.
steps() {
  from=$(cat progress 2>/dev/null)
  until now=$(cat progress 2>/dev/null) && [ "${now:-0}" -gt $((${from:-0} + $1)) ]; do
    kill -0 "$program" 2>/dev/null || return 1
    sleep 0.05
  done
}

for clock in wall task-clock:u; do
  rm -f progress
  "$LUAJIT" program.lua "$clock" progress >out 2>&1 &
  program=$!
  if ! steps 100; then
    wait "$program"
    [ $? = 77 ] || fail "$clock: the program ended: $(cat out)"
    echo "left out $clock: $(cat out)"
    continue
  fi
  strace -f -o trace.out -p "$program" 2>/dev/null &
  tracer=$!
  until grep -q '^TracerPid:.[1-9]' "/proc/$program/status"; do sleep 0.05; done
  steps 200 || fail "$clock: the traced program ended"
  kill "$tracer"
  wait "$tracer"
  steps 20 || fail "$clock: the program ended"
  kill -KILL "$program"
  wait "$program" 2>/dev/null
done
exit $status
