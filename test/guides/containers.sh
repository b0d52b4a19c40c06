# doc/guides/containers.md: in namespaces, read-only, without capabilities and without
# perf_event_open. Without namespaces, only the last.
# TIMEOUT: 600
# BASE: none, a guide on another program; guides/script and guides/neovim try each LuaJIT

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_needs setpriv unshare
lib=$SYSPROF_SOURCE/test/lib
# In the background, `$!` is then unshare.
container=(unshare --user --map-root-user --mount --pid --ipc --net --fork --kill-child
  bash "$lib/helpers/guide_container.sh" "$PWD")
forbidden=("$LUAJIT" -E "$lib/helpers/guide_seccomp.lua")

"${forbidden[@]}" true || {
  echo "skipped: there can be no seccomp filter"
  exit 77
}
if ! timeout 60 "${container[@]}" true 2>why; then
  echo "without namespaces: $(tail -n 1 why)"
  container=("${forbidden[@]}")
fi

GUIDE_IN=("${container[@]}")
mkdir -p tmpfs
GUIDE_SECONDS=300 guide_run containers PROFILES="$PWD/tmpfs"
{
  grep -q '^event cpu .*; by ctimer$' guide.log &&
    grep -q "^LUAJIT_SYSPROF=.*: clock 'task-clock': .*seccomp.*; this VM is not profiled$" guide.log &&
    grep -q '^luajit-sysprof: [1-9][0-9]* samples\?, .* written to app.html$' guide.log &&
    grep -Eq '^.* parse \(app.lua:1\)' guide.log
} || {
  cat guide.log
  echo "FAIL: not what the guide says: the clock, the refusal of another, the run, or the tree"
  exit 1
}

# As process 1, ended by SIGINT: complete.
cat >serve.lua <<'END'
local function serve(n)
  local t = {}
  for i = 1, n do t[i] = ("%d"):format(i * 7 % 1009) end
  table.sort(t)
end
while os.clock() < 1 do serve(1000) end
assert(io.open("ready", "w")):close()
while os.clock() < 60 do serve(1000) end
END
LUAJIT_SYSPROF="path=$PWD/one.bin,hz=1000" "${container[@]}" "$LUAJIT" serve.lua >one.log 2>&1 &
runner=$!
trap 'kill -9 $runner 2>/dev/null' EXIT
until [ -e ready ]; do
  kill -0 $runner || {
    cat one.log
    echo "FAIL: the program has ended"
    exit 1
  }
  sleep 0.1
done
# unshare waits for its only child, process 1.
one=$(cat "/proc/$runner/task/$runner/children" 2>/dev/null)
# shellcheck disable=SC2086
kill -INT ${one:-$runner}
wait $runner
grep -q 'interrupted!' one.log || {
  cat one.log
  echo "FAIL: process 1 was not interrupted"
  exit 1
}
"$SYSPROF/bin/luajit-parse-sysprof" one.bin >/dev/null || exit 1
guide_check one.bin 0.995 "_start;main;lua_pcall;main chunk (serve.lua);serve (serve.lua:1);table.sort"
