# doc/guides/memory.md: a worker of nginx that keeps each visitor. What grew between two dumps is at
# the line that makes the sessions, as many bytes as new visitors have.
# TIMEOUT: 600

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"
. "$SYSPROF_SOURCE/test/lib/helpers/guide_nginx.sh"

nginx_server
PERIOD=65536
guide_run memory SERVER="$server" SECONDS_OF_LOAD=2 BYTES=$PERIOD

fail() {
  cat guide.log
  echo "FAIL: $1"
  exit 1
}

# The first line of the comparison.
grep -A 1 'self      change       total      change  line' guide.log | grep -q 'open (.*sessions\.lua:5)$' ||
  fail "the comparison does not begin with the line that leaks"
[ "$(grep -c '^memory: ' guide.log)" -ge 10 ] || fail "the report does not say where the memory is"
for page in profiles/* before.bin after.bin; do
  "$SYSPROF/bin/luajit-parse-sysprof" "$page" >/dev/null || fail "$page is not whole"
done
grep -q '"amounts":true' grown.html || fail "the flame graph does not compare bytes"

# Bytes of the sessions between the dumps, against the requests of the second load. A block of s
# bytes, far fewer than the period, is sampled with s/period. So n bytes have the variance n * period.
sessions() {
  "$SYSPROF/bin/luajit-parse-sysprof" --event=live --lines --no-host "$1" |
    sed -n 's/.*open ([^;]*sessions\.lua:5) \([0-9]*\)$/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}
requests=$(sed -n 's/^ *\([0-9]*\) requests in .*/\1/p' guide.log | tail -n 1)
"$LUAJIT" - "$(sessions before.bin)" "$(sessions after.bin)" "$requests" \
  $PERIOD <<'END' || fail "other bytes than the visitors have"
local before, after, visitors = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
jit.off()
local list = {}
for i = 1, 1000 do list[i] = false end
collectgarbage("stop")
local start = collectgarbage("count")
for i = 1, 1000 do list[i] = { id = i, pages = {}, since = 1.5 } end
local expected = visitors * (collectgarbage("count") - start) * 1024 / 1000
local off = (after - before - expected) / math.sqrt(expected * arg[4])
print(("%d visitors: %.0f bytes expected, %.0f found, %+.2f standard errors"):format(visitors, expected,
  after - before, off))
os.exit(math.abs(off) < 5 and 0 or 1)
END
