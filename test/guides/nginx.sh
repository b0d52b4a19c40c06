# doc/guides/nginx.md: nginx with Lua, as root with a port below 1024, and with workers of
# another user.
# TIMEOUT: 600
# BASE: none, a guide on another program; guides/script and guides/neovim try each LuaJIT
# WAITS: half of its time
# LONG: 23

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

SAMPLES_MIN=300		# The rarest expected stack has 8 % of the samples.

. "$SYSPROF_SOURCE/test/lib/helpers/guide_nginx.sh"

# Under load, the server gets little of the time.
GUIDE_SECONDS=300
for seconds in 3 10 20; do
  rm -rf "${folder:?}"/*
  nginx_server
  guide_run nginx SERVER="$server" SECONDS_OF_LOAD=$seconds
  ! grep -q 'Non-2xx' guide.log || {
    cat guide.log
    echo "FAIL: the server refused requests"
    exit 1
  }
  samples=$(sed -n 's/^cpu *\([0-9]*\) samples.*/\1/p' guide.log | head -n 1)
  [ "$samples" -lt $SAMPLES_MIN ] || break
done
[ "$samples" -ge $SAMPLES_MIN ] || {
  echo "skipped: the machine is too busy, nginx had time for $samples samples only"
  exit 77
}

guide_check "$(echo profiles/*.bin.*)" 0.995 \
  "_start;main;ngx_master_process_cycle;ngx_spawn_process;ngx_http_lua_run_thread;main chunk (content_by_lua(nginx.conf:15));string.gsub" \
  "main;ngx_http_core_run_phases;ngx_http_lua_run_thread;main chunk (content_by_lua(nginx.conf:15));table.sort" \
  "main;ngx_http_lua_run_thread;writev"
guide_check profiles/worker*.bin 0.99 \
  "main;ngx_http_lua_run_thread;main chunk (content_by_lua(nginx.conf:15))"

# One file for each of: the command, the master, its reload, four workers.
[ "$(ls profiles/*.1.bin profiles/*.1.bin.* profiles/*.2.bin profiles/*.2.bin.* | wc -l)" = 7 ] || {
  ls -l profiles
  cat guide.log
  echo "FAIL: not each process has a profile of its own"
  exit 1
}
[ "$(id -u)" != 0 ] || [ "$(stat -c %U:%a profiles/worker*.bin)" = www-data:600 ] || {
  ls -l profiles
  echo "FAIL: a worker has not written its profile as www-data"
  exit 1
}
# Each is complete.
for profile in profiles/*; do
  "$SYSPROF/bin/luajit-parse-sysprof" "$profile" >/dev/null || exit 1
done
