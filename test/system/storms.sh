# Short storms of etc/storms: threads are cancelled, handlers jump, libraries and namespaces
# come and go, processes end, VMs start and stop, clients send broken requests.
# Each passes, and reads profiles of what it did.
# TIMEOUT: 600
# BASE: none, files, signals, processes; capi/many_vms tries each LuaJIT
# LONG: 42

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

case $(nm -D "$SYSPROF_BUILD/lib/libluajit-5.1.so.2") in
*__tsan_*)
  echo "skipped: the thread sanitizer delays signals"
  exit 77
  ;;
esac
"$SYSPROF_SOURCE/etc/storms" "$SYSPROF_BUILD" 2 >out 2>&1 || fail "status $?"
cat out
for storm in cancel exit http jump libraries namespaces requests vms; do
  grep -Eq "^$storm +2 s: (passed: .*, [1-9][0-9]* (samples|profiles)|skipped: .*)$" out ||
    fail "$storm: no figures"
done
exit $status
