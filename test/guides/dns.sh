# doc/guides/dns.md: dnsdist with a rule in Lua. The rule runs on another thread, and as
# another user, than at the start of the profile.
# BASE: none, a guide on another program; guides/script and guides/neovim try each LuaJIT

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

end_server() {
  [ ! -s dnsdist.pid ] || kill "$(cat dnsdist.pid)"
  rm -f dnsdist.pid
}

profile() {
  local ports
  end_server
  # Another program may take a port before dnsdist does.
  mapfile -t ports < <("$LUAJIT" "$SYSPROF_SOURCE/test/lib/helpers/free_ports.lua" 2)
  guide_run dns PORT="${ports[0]}" CONSOLE="${ports[1]}"
  guide_check dnsdist.bin 0.995 \
    '__clone3|libc.so.6;processQuery(;LuaAction::operator();lua_pcall;answer ([string "chunk"]:16);LuaContext::' \
    '__clone3|libc.so.6;processQuery(;answer (;[gc' \
    '__clone3|libc.so.6;dnsdist;sendto|sendmsg'
  grep -q ' answer (\[string "chunk"\]:16)$' guide.log || {
    cat guide.log
    echo "FAIL: the rule is not in the table"
    exit 1
  }
}

guide_needs dnsdist dnsperf
if [ "$(id -u)" = 0 ] && ! setpriv --reuid=_dnsdist --regid=_dnsdist --clear-groups true; then
  echo "skipped: root may not become another user here"
  exit 77
fi
trap end_server EXIT
guide_tries 3 profile
