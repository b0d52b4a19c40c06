# Where kernel.perf_event_max_sample_rate is low, the task clock takes the highest rate below it,
# and says so. The kernel's file is replaced by another one, in a mount namespace.

limit=/proc/sys/kernel/perf_event_max_sample_rate
if ! unshare --user --map-root-user --mount true 2>/dev/null && ! unshare --mount true 2>/dev/null
then
  echo "skipped: no mount namespace can be made here"
  exit 77
fi
as="--mount"
unshare --mount true 2>/dev/null || as="--user --map-root-user --mount"

failed=0
for rate in 500 1000; do
  echo "$rate" >rate
  # The clock leaves out the kernel's part, so an ordinary user may open it.
  said=$(unshare $as sh -c "
    mount --bind rate $limit && exec '$LUAJIT' -e '
      local ok, err = misc.sysprof.start { mode = \"D\", clock = \"task-clock:u\", hz = 100000 }
      if not ok then print(err) os.exit(77) end
      misc.sysprof.stop()
      print(misc.sysprof.report().limit)'")
  status=$?
  if [ "$status" = 77 ]; then
    echo "skipped: $said"
    exit 77
  fi
  echo "limit $rate: $said"
  got=$(echo "$said" | sed -n "s/^task-clock:u takes \([0-9]*\) samples a second instead of \
100000: kernel.perf_event_max_sample_rate allows no more$/\1/p")
  # The kernel counts in its own ticks, up to 1000 a second, and the last of each is too many.
  if [ -z "$got" ] || [ "$got" -gt "$rate" ] || [ "$got" -lt $((rate / 4)) ]; then
    failed=1
  fi
done
exit $failed
