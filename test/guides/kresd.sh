# doc/guides/kresd.md: Knot Resolver with a policy in Lua.

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

end_server() {
  [ ! -s kresd.pid ] || kill -9 "$(cat kresd.pid)"
  rm -f kresd.pid
}

profile() {
  end_server
  rm -rf kresd.*.bin control ./*.mdb
  # Another program may take it before kresd does.
  guide_run kresd PORT="$("$LUAJIT" "$SYSPROF_SOURCE/test/lib/helpers/free_ports.lua" 1)"
  guide_check kresd.*.bin 0.995 \
    "_start;kresd;uv_run;kr_resolve_consume;lua_pcall;kres_modules.policy.evaluate (;cb (kresd.conf:18);kres.dname2str" \
    "kres_modules.policy.evaluate (;cb (kresd.conf:18);is_blocked (kresd.conf:" \
    "uv_run;__sendmmsg"
  grep -q ' cb (kresd.conf:18)$' guide.log || {
    cat guide.log
    echo "FAIL: the policy is not in the table"
    exit 1
  }
}

guide_needs kresd dnsperf
trap end_server EXIT
guide_tries 3 profile
