# doc/guides/script.md: a Lua script.
# TIMEOUT: 600
# LONG: 41

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_needs
GUIDE_SECONDS=300 guide_run script
guide_check before.bin 0.995 \
  "main;lua_pcall;main chunk (words.lua);listing (words.lua:11);lj_str_new" \
  "main chunk (words.lua);count (words.lua:2);string."
guide_check after.bin 0.995 "main chunk (words.lua);count (words.lua:2)"

# The line that the guide blames, in the listing; and the function in the comparison.
grep -Eq '^ +[0-9.]+ .* 16 +text = text' guide.log &&
  grep -Eq '^ +-[0-9.]+ .*  listing' guide.log &&
  grep -q 'listing (words.lua:11)' before.html || {
  cat guide.log
  echo "FAIL: no line 16, no function that is less, or no flame graph"
  exit 1
}
