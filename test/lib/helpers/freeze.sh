# Freezes and thaws a process repeatedly, in a control group of its own.
#
# usage: sh freeze.sh PID TIMES
#   Status 0: the process froze so many times, and is in its old group again; 77: this
#   machine has no usable freezer; 1: the process did not freeze.

set -u
pid=$1
times=$2

# Folders of the freezer's groups and of the process's group; the file that reports, and the
# file that sets, whether a group is frozen.
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
until rmdir "$group" 2>/dev/null; do	# The process may stay in the group for a moment.
  looks=$((looks - 1))
  [ $looks -gt 0 ] || exit 1
  sleep 0.02
done
exit $status
