# doc/guides/love.md: a LÖVE game without a screen.

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_needs love
guide_run love CLONE="$SYSPROF_SOURCE"
guide_check love.bin 0.995 \
  '__libc_start_main;[coroutine];love.update (main.lua;love;hit (main.lua;string.format' \
  '__libc_start_main;love.update (main.lua;pack (main.lua;love;deflate'
grep -q '[1-9][0-9]* .* local packed = love.data.compress' guide.log || {
  cat guide.log
  echo "FAIL: the line that packs has no cost"
  exit 1
}
