#!/bin/sh
# Installs the Debian packages that this repository needs. Run as root, it installs missing
# packages; otherwise it lists them and stops. Without missing packages it does nothing.
#
# usage: etc/deps.sh [build] [test] [bench] [packages]...   without: build

set -eu
. "$(dirname "$0")/usage.sh"
usage "$@"

# Each line: a file or command of the package, then the package.
build='gcc gcc
/usr/include/stdio.h libc6-dev
make make
cmake cmake
dpkg-source dpkg-dev'
# For the unwinder's tests, a host program in C++, programs of the distribution that run
# on LuaJIT, the guides, and the lint.
test='/usr/include/*/libunwind.h libunwind-dev
nm binutils
g++ g++
clang clang
clang-format clang-format
pkg-config pkg-config
sysbench sysbench
nvim neovim
/usr/lib/*/lua/5.1/luv.so lua-luv
wrk wrk
love love
dnsdist dnsdist
dnsperf dnsperf
/usr/sbin/nginx nginx
/usr/lib/nginx/modules/ngx_http_lua_module.so libnginx-mod-http-lua
patchelf patchelf
curl curl
nc netcat-openbsd
luacheck lua-check'
# For etc/bench/run: other profilers and programs.
bench='perf linux-perf
/usr/lib/*/libprofiler.so.0 libgoogle-perftools4
google-pprof google-perftools
/usr/sbin/nginx nginx
/usr/lib/nginx/modules/ngx_http_lua_module.so libnginx-mod-http-lua
wrk wrk
size binutils'
# For etc/check_packages.
packages='debootstrap debootstrap
lintian lintian'

missing=
while read -r sign package; do
  # shellcheck disable=SC2086
  case $sign in
  /*) ! ls $sign >/dev/null 2>&1 || continue ;;
  *) ! command -v "$sign" >/dev/null || continue ;;
  esac
  missing="$missing $package"
done <<EOF
$(for group in "${@:-build}"; do eval "echo \"\$$group\""; done)
EOF

[ -n "$missing" ] || exit 0
echo "Installing:$missing"
if [ "$(id -u)" != 0 ]; then
  echo "error: not root; install these Debian packages:$missing" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# No package may start a service: the service would take a port, or fail without one.
path=$(mktemp -d)
trap 'rm -rf "$path"' EXIT
for command in invoke-rc.d deb-systemd-invoke; do
  printf '#!/bin/sh\n' >"$path/$command"
  chmod 755 "$path/$command"
done
# shellcheck disable=SC2086
apt-get -qq install -y --no-install-recommends \
  -o DPkg::Path="$path:/usr/sbin:/usr/bin:/sbin:/bin" $missing >/dev/null
