# Freezes a process by a control group of its own, and thaws it, again and again.
#
# usage: sh freeze.sh PID TIMES
#   Status 0: it was frozen so many times, and is where it was; 77: there is no freezer
#   here that can be used; 1: it was not frozen.

set -u
pid=$1
times=$2

# Folder of the freezer's groups, of the group that the process is in, what says and
# sets whether one is frozen.
line() { sed -n "s/^[0-9]*:$1://p" "/proc/$pid/cgroup"; }
mounted() { awk -v kind="$1" -v option="$2" '$3 == kind && ("," $4 ",") ~ option { print $2; exit }' /proc/mounts; }
root=$(mounted cgroup ',freezer,')
if [ -n "$root" ]; then
  home=$root$(line freezer) control=freezer.state on=FROZEN off=THAWED look=freezer.state
else
  root=$(mounted cgroup2 ,)
  home=$root$(line '') control=cgroup.freeze on=1 off=0 look=cgroup.events
fi
is_frozen() { grep -Eq '^(FROZEN|frozen 1)$' "$group/$look"; }

group=$root/sysprof.$pid
[ -n "$root" ] && mkdir "$group" 2>/dev/null || exit 77
if ! [ -e "$group/$control" ] || ! echo "$pid" 2>/dev/null >"$group/cgroup.procs"; then
  rmdir "$group"
  exit 77
fi

status=0
while [ "$times" -gt 0 ]; do
  times=$((times - 1))
  echo $on >"$group/$control"
  looks=500
  until is_frozen; do
    looks=$((looks - 1))
    [ $looks -gt 0 ] || { status=1; break; }
    sleep 0.02
  done
  sleep 0.03
  echo $off >"$group/$control"
  sleep 0.03
done
echo "$pid" 2>/dev/null >"$home/cgroup.procs"
looks=500
until rmdir "$group" 2>/dev/null; do	# It may be in the group for a moment still.
  looks=$((looks - 1))
  [ $looks -gt 0 ] || exit 1
  sleep 0.02
done
exit $status
