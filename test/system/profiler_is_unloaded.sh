# A program closes libluajit during a profile. The library stays, so that late signals
# find its handler. Each profile is complete at the end of the program.
# TIMEOUT: 600

set -u
rm -rf ./*
status=0
library=$SYSPROF_BUILD/lib/libluajit-5.1.so.2

case ${CFLAGS-} in
*sanitize*) echo "skipped: a sanitizer's library cannot be loaded late"; exit 77 ;;
esac
# shellcheck disable=SC2086
cc ${CFLAGS-} -O1 -o unload_host "$SYSPROF_SOURCE/test/lib/hosts/unload_host.c" -ldl -lpthread || exit 1

for ending in close keep late; do
  if ! timeout 180 ./unload_host "$library" "$ending" "$ending"; then
    echo "FAIL: $ending: status"
    status=1
  fi
  runs="1 2 3"
  [ $ending != late ] || runs=1
  for i in $runs; do
    if ! "$SYSPROF_BUILD/bin/luajit-parse-sysprof" "$ending.$i" >out 2>messages ||
      ! grep -q ';main;.*main chunk' out; then
      echo "FAIL: $ending.$i"
      head -n 5 messages out
      status=1
    fi
  done
done
exit $status
