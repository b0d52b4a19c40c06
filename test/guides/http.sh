# doc/guides/http.md: serve for pprof, Grafana's collector, and Pyroscope's ingest.
# TIMEOUT: 600
# BASE: none, a guide on another program; guides/script and guides/neovim try each LuaJIT
# WAITS: half of its time
# LONG: 12

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_needs curl
export LUA_PATH="$SYSPROF_SOURCE/tools/?.lua;$guide_modules"
"$LUAJIT" "$SYSPROF_SOURCE/test/lib/helpers/ingest_receiver.lua" pushed.pb.gz >receiver.log 2>&1 &
receiver=$!
trap 'kill $receiver' EXIT
until [ -s receiver.log ]; do sleep 0.1; done
port=$(head -n 1 receiver.log)

fail() {
  cat guide.log receiver.log
  echo "FAIL: $1"
  exit 1
}

# What Alloy asks for, as the guide's configuration tells; before the guide ends its server.
cat >scrape.sh <<'END'
path() { sed -n "/profile\.$1 {/,/}/s/.* path *= \"\(.*\)\"/\1/p" config.alloy; }
address=$(sed -n 's/.*"__address__" = "\([^"]*\)".*/\1/p' config.alloy)
event=$(sed -n 's/.*"event" = \["\(.*\)"\].*/\1/p' config.alloy | sed 's/,/%2C/g')
curl -sf "http://$address$(path process_cpu)?event=$event&seconds=2" >scraped.pb.gz
curl -sf "http://$address$(path goroutine)?event=$event" >coroutines.pb.gz
END
mkdir -p source/doc/guides
{
  cat "$SYSPROF_SOURCE/doc/guides/http.md"
  printf '\n```sh\n. ./scrape.sh\n```\n'
} >source/doc/guides/http.md
address=$(guide_server 10000 30000)
SYSPROF_SOURCE=$PWD/source guide_run http LISTEN="$address" PYROSCOPE="http://127.0.0.1:$port"

grep -q 'price (shop.lua:1)' guide.log || fail "no table"
grep -q '1 running' guide.log || fail "no coroutines"
! grep -q FAILED receiver.log || fail "the receiver refused the profile"
grep -q 'price (shop.lua:1)' receiver.log || fail "the pushed profile lacks a function"

cat >decoded.lua <<'END'
local pprof, t = require("pprof_decode"), require("tools_test")
local function types(path) return table.concat(pprof.decode(t.read_file(path)).types, " ") end
t.equal(types("cpu.pb.gz"), "samples/count cpu/nanoseconds", "cpu.pb.gz")
t.contains(types("scraped.pb.gz"), "cpu/nanoseconds alloc_objects/count alloc_space/bytes", "scraped.pb.gz")
t.equal(types("coroutines.pb.gz"), "coroutine/count", "coroutines.pb.gz")
t.finish()
END
"$LUAJIT" decoded.lua || fail "a profile is not what it must be"
