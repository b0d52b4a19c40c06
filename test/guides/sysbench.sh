# doc/guides/sysbench.md: a Lua script on several threads, each with a VM and a profile.
# BASE: none, a guide on another program; guides/script and guides/neovim try each LuaJIT

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_needs sysbench
guide_run sysbench
guide_check "$(echo orders.*.bin)" 0.995 \
  '__clone3|libc.so.6;lua_pcall;thread_run (;event (orders.lua;order (;line (;sb_rand_pareto;pow' \
  '__clone3|libc.so.6;event (orders.lua;[gc'
# A thread is in its own file only.
for i in 2 3 4; do
  threads=$("$SYSPROF/bin/luajit-parse-sysprof" --format=top --by=thread orders.$i.bin |
    grep -c " sysbench ([0-9]*)$")
  [ "$threads" -le 1 ] || {
    cat guide.log
    echo "FAIL: orders.$i.bin has $threads threads"
    exit 1
  }
done
