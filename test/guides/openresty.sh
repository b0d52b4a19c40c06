# doc/guides/openresty.md: our build takes the place of OpenResty's folder luajit. Debian has no
# OpenResty: a copy of its nginx, with an RPATH, stands in.
# TIMEOUT: 600
# BASE: none, a guide on another program; guides/script and guides/neovim try each LuaJIT
# LONG: 18

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
. "$SYSPROF_SOURCE/test/lib/helpers/guide_nginx.sh"
guide_needs patchelf cc

their=$(ldconfig -p | sed -n 's/.*libluajit-5\.1\.so\.2 .* => //p' | head -n 1)
[ -n "$their" ] || {
  echo "skipped: libluajit2-5.1-2 is not installed"
  exit 77
}

# OpenResty's folder, with its names of files, and a module that a user installed.
openresty=$PWD/openresty
luajit=$openresty/luajit
mkdir -p "$luajit/lib" "$luajit/bin" "$luajit/share/lua/5.1" "$openresty/nginx/sbin" source/bundle
cp "$their" "$luajit/lib/libluajit-5.1.so.2.1.ROLLING"
ln -s libluajit-5.1.so.2.1.ROLLING "$luajit/lib/libluajit-5.1.so.2"
echo old >"$luajit/bin/luajit-2.1.ROLLING"
ln -s luajit-2.1.ROLLING "$luajit/bin/luajit"
echo 'return "installed beside it"' >"$luajit/share/lua/5.1/rock.lua"
nginx=$openresty/nginx/sbin/nginx
cp "$(PATH=$PATH:/usr/sbin command -v nginx)" "$nginx"
patchelf --force-rpath --set-rpath "$luajit/lib" "$nginx" && patchelf --add-needed libluajit-5.1.so.2 "$nginx" || exit 1
ln -s "$LUAJIT_BASE" source/bundle/LuaJIT-2.1

GUIDE_SECONDS=500
# Nothing needs code that is fast.
guide_run openresty CFLAGS=-O0 OPENRESTY="$openresty" CLONE="$SYSPROF_SOURCE" SOURCE="$PWD/source"

lib=$luajit/lib/libluajit-5.1.so.2
before="its LuaJIT     $lib, without the profiler
to profile it  LD_PRELOAD=$SYSPROF/lib/libluajit-5.1.so.2 LUAJIT_SYSPROF=fork $nginx"
[ "$(sed -n '/its LuaJIT/,/to profile/p' guide.log | head -n 2)" = "$before" ] ||
  fail "doctor before: expected '$before' in $(grep -A 3 '^program' guide.log)"
[ "$(grep '^its LuaJIT' guide.log | tail -n 1)" = "its LuaJIT     $lib, with the profiler" ] ||
  fail "doctor after: $(grep -A 3 '^program' guide.log)"
[ "$(cat "$luajit.before/bin/luajit-2.1.ROLLING")" = old ] || fail "the old luajit is another"

# The server runs with it, and finds the module.
nginx_server
cat >nginx.conf <<END
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
user www-data;
pid nginx.pid;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
  lua_package_path "/usr/share/lua/5.1/?.lua;;";
  server {
    listen $server;
    location / {
      content_by_lua_block { ngx.say(require("rock"), ", ", #table.pack(1, 2), ", ", misc.sysprof.version) }
    }
  }
}
END
"$nginx" -e error.log -p "$PWD/" -c nginx.conf >nginx.log 2>&1 || fail "nginx: $(cat nginx.log error.log)"
answer=$(curl -s "http://$server/")
version=$("$luajit/bin/luajit" -e 'print(misc.sysprof.version)')
[ -n "$version" ] && [ "$answer" = "installed beside it, 2, $version" ] ||
  fail "nginx answers '$answer', luajit prints '$version': $(cat error.log)"
"$nginx" -e error.log -p "$PWD/" -c nginx.conf -s quit 2>/dev/null
while [ -e nginx.pid ]; do sleep 0.1; done

# Back: its own library, as before.
mv "$luajit" "$luajit.sysprof" && mv "$luajit.before" "$luajit" || fail "back"
"$SYSPROF/bin/luajit-sysprof" doctor "$nginx" >out
grep -qxF "its LuaJIT     $lib, without the profiler" out || fail "doctor after the way back: $(cat out)"
exit $status
