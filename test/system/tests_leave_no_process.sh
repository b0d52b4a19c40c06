# A test that ctest kills leaves no process: no child, no daemon, and none in another
# session. Apart from that, run_test changes nothing for a test.
# BASE: none, it tests run_test only

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp "$SYSPROF_BUILD/test/run_test" "$folder"
cd "$folder" || exit 1

# A process that only SIGKILL ends. It appends its number to the file pids.
cat >stays.sh <<'END'
trap '' TERM HUP INT
echo $$ >>pids
while :; do sleep 100; done
END

# A test with three of them: a child, one in a session of its own, and a daemon. Without a
# status it is the fourth.
cat >leaves.sh <<'END'
sh stays.sh &
setsid sh stays.sh &
(setsid sh -c 'sh stays.sh &' &)
[ $# = 1 ] || exec sh stays.sh
until [ "$(wc -l <pids)" = 3 ]; do sleep 0.01; done
exit "$1"
END

# How many of the processes live. A zombie does not.
alive() {
  while read -r pid; do
    grep -q '^State:.[^ZX]' "/proc/$pid/status" 2>/dev/null && echo "$pid"
  done <pids | wc -l
}

# All processes end; if not, the test takes too long.
all_end() {
  until [ "$(alive)" = 0 ]; do sleep 0.01; done
}

# With a command that runs another as some user.
leaves_none() {
  rm -rf work
  mkdir work
  chmod 777 work
  cp stays.sh leaves.sh work
  cd work || exit 1

  : >pids
  chmod 666 pids
  "$@" ../run_test sh leaves.sh 77 >out 2>&1
  [ $? = 77 ] || fail "the status is another, with: $*"
  [ "$(alive)" = 0 ] || fail "processes live after the end, with: $*"
  [ "$(grep -c '^run_test: the test left a process: [0-9]* (' out)" -ge 1 ] ||
    fail "no message tells of the processes, with: $*"

  : >pids
  "$@" ../run_test sh leaves.sh &
  waits=$!
  until [ "$(wc -l <pids)" = 4 ]; do sleep 0.01; done
  [ "$(alive)" = 4 ] || fail "the processes ended before the test, with: $*"
  kill -KILL $waits
  wait $waits 2>/dev/null
  all_end
  cd ..
}

leaves_none env
[ "$(id -u)" != 0 ] || leaves_none setpriv --reuid=65534 --regid=65534 --clear-groups

# By ctest, as often as its time is over too early.
for seconds in 1 4 16 64; do
  cat >CTestTestfile.cmake <<END
add_test(leaves "$folder/run_test" sh leaves.sh)
set_tests_properties(leaves PROPERTIES TIMEOUT $seconds)
END
  : >pids
  ctest >out 2>&1 && fail "the test passes"
  all_end
  began=$(wc -l <pids)
  [ "$began" != 4 ] || break
done
[ "$began" = 4 ] || fail "only $began processes began"
grep -q 'leaves.*Timeout' out || {
  cat out
  fail "the test did not run out of time"
}

# What a test sees is the same as without run_test.
cat >sees.sh <<'END'
cat
ps -o pgid=,sid= -p $$
ulimit -a
grep -E '^(Sig(Blk|Ign|Cgt)|Cap...|Seccomp|NoNewPrivs):' /proc/self/status
pwd
env | grep -v '^_=' | sort
printf '%s\n' "$@"
ls -l /proc/$$/fd >files
sed -n 's/.* \([0-9]* -> \)/\1/p' files
echo error >&2
END
echo input >in
for ignored in '' HUP CHLD; do
  for run in '' "$folder/run_test"; do
    (
      [ -z "$ignored" ] || trap '' "$ignored"
      ulimit -n 100 -c 0
      # shellcheck disable=SC2086
      $run bash sees.sh 'an argument' '' <in >saw 2>&1
    )
    [ -n "$run" ] || mv saw expected
  done
  diff expected saw || fail "a test sees something else, $ignored ignored"
done

# A test that a signal ends.
./run_test sh -c 'kill -SEGV $$' 2>/dev/null
[ $? = 139 ] || fail "the signal that ended the test is lost"
./run_test ./missing 2>out
[ $? = 125 ] || fail "the status of a command that is missing"
grep -q missing out || fail "no message names the command that is missing"
exit $status
