# A CPU quota of the control group stops a program: its profile says how often, and for how long, as
# the kernel's cpu.stat does. For each version of the control groups, in containers, and for hostile
# files. The files are replaced in a mount namespace; one case runs in a real group.
# By hand: as root.
# BASE: none, times that the kernel counts; the VM runs a loop, or none

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
rm -rf ./*

if ! unshare --mount true 2>/dev/null; then
  echo "skipped: no mount namespace can be made here"
  exit 77
fi

cat >program.lua <<'LUA'
local stat, after = ...
assert(misc.sysprof.start { mode = "C", path = "p.bin", clock = "cpu" })
local till = os.clock() + 0.1
while os.clock() < till do end
if after then
  local file = assert(io.open(stat, "w"))
  file:write(after)
  file:close()
end
assert(misc.sysprof.stop())
LUA

# Profile with GROUPS in /proc/self/cgroup, and a cpu.stat that is BEFORE at the start, AFTER at the stop.
pretend() {
  printf "$1" >groups
  unshare --mount sh -c '
    mount --bind groups /proc/$$/cgroup && mount -t tmpfs none /sys/fs/cgroup &&
    mkdir -p "$(dirname "$1")" && printf "$2" >"$1" && exec "$4" program.lua "$1" "$(printf "$3")"' \
    sh "$2" "$3" "$4" "$LUAJIT" || fail "$2: status $?"
  "$SYSPROF_BUILD/bin/luajit-sysprof" report p.bin >text 2>&1 || fail "$2: report: $(cat text)"
}

# Expect so many periods, and the text of the time.
expect() {
  tr '\n' ' ' <text | tr -s ' ' >line
  grep -q "the CPU quota of the control group stopped the program in $1, for $2 over all processors;" line ||
    fail "$3: expected $1, $2: $(cat line)"
}

expect_none() {
  ! grep -q "CPU quota" text || fail "$1: $(cat text)"
}

group=/sys/fs/cgroup
v2='usage_usec 1\nnr_periods %s\nnr_throttled %s\nthrottled_usec %s\n'
v1='nr_periods %s\nnr_throttled %s\nthrottled_time %s\n'
two() { printf "$v2" "$@"; }
one() { printf "$v1" "$@"; }

pretend '0::/a/b\n' $group/a/b/cpu.stat "$(two 10 3 100000)" "$(two 30 15 1350000)"
expect "12 periods" "1.250 s" "version 2"
pretend '0::/a/b/c/d\n' $group/a/cpu.stat "$(two 10 3 100000)" "$(two 30 4 101000)"
expect "1 period" "0.001 s" "a group above"
pretend '0::/\n' $group/cpu.stat "$(two 1 0 0)" "$(two 3 2 2000000)"
expect "2 periods" "2.000 s" "a container with a namespace of control groups"
pretend '0::/docker/0123\n' $group/cpu.stat "$(two 1 0 0)" "$(two 3 2 2000000)"
expect "2 periods" "2.000 s" "a container without one"
pretend '9:name=systemd:/x\n4:cpu,cpuacct:/a\n0::/x\n' $group/cpu,cpuacct/a/cpu.stat \
  "$(one 10 3 5000000)" "$(one 30 15 3005000000)"
expect "12 periods" "3.000 s" "version 1"
pretend '2:cpuset:/y\n4:cpuacct,cpu:/a\n' $group/cpu/a/cpu.stat "$(one 10 3 0)" "$(one 30 15 3000000000)"
expect "12 periods" "3.000 s" "version 1, by the controller's name"

pretend '0::/a\n' $group/a/cpu.stat 'usage_usec 1\n' 'usage_usec 2\n'
expect_none "no controller"
pretend '0::/a\n' $group/a/cpu.stat "$(two 10 3 100000)" "$(two 30 3 100000)"
expect_none "never stopped"
pretend '0::/a\n' $group/a/cpu.stat "$(two 10 30 1000)" "$(two 30 3 100000)"
expect_none "counts that fall"
pretend '4:cpu:/a\n' $group/x/cpu.stat "$(one 1 1 1)" "$(one 9 9 9)"
expect_none "no such group"
pretend 'cpu\n:\n::\n4:cpu\n4:cpu:\n:::::\n4:xcpu,cpux:/a\n' $group/a/cpu.stat "$(one 1 1 1)" "$(one 9 9 9)"
expect_none "no lines"
deep=$(printf '/%0900d' 0)
pretend "0::$deep$deep$deep$deep/../../..\n" $group/a/cpu.stat "$(two 1 1 1)" "$(two 9 9 9)"
expect_none "a path that is too long"
pretend '0::/a\n' $group/a/cpu.stat '' 'nr_periods 99999999999999999999999\nnr_throttled 99999999999999999999999\n'
expect_none "numbers that are too large"

# A real group.
mount | sed -n 's/^cgroup on \([^ ]*\) type cgroup (.*[,(]cpu[,)].*/\1/p' >mounts
read -r mount <mounts || mount=
[ -n "$mount" ] || mount=$group
real=$mount/sysprof-test-$$
trap 'rmdir "$real" 2>/dev/null' EXIT
if mkdir "$real" 2>/dev/null && { [ -f "$real/cpu.cfs_quota_us" ] || [ -f "$real/cpu.max" ]; }; then
  if [ -f "$real/cpu.max" ]; then echo "10000 50000" >"$real/cpu.max"
  else echo 50000 >"$real/cpu.cfs_period_us" && echo 10000 >"$real/cpu.cfs_quota_us"
  fi || fail "no quota"
  sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" program.lua' sh "$real" "$LUAJIT" || fail "real: status $?"
  "$SYSPROF_BUILD/bin/luajit-parse-sysprof" --format=json p.bin >json || fail "real: json"
  got=$(sed -n 's/.*"throttled": *"\([0-9]*\)".*/\1/p' json | head -n 1)
  all=$(sed -n 's/^nr_throttled //p' "$real/cpu.stat")
  echo "a real group: stopped $all times, $got of these in the profile"
  # The profile has 0.1 s of CPU time, of 0.01 s a period. The rest is the start of the program, and its end.
  [ "${got:-0}" -ge 5 ] && [ "$got" -le "$all" ] || fail "real: $got of $all"
else
  echo "no group with a quota can be made here: only replaced files were read"
fi
exit $status
