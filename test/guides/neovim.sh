# doc/guides/neovim.md: start-up of nvim with a slow plugin.

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_needs nvim
guide_run neovim
guide_check nvim.bin 0.995 \
  '_start;load_plugins;main chunk (;sorted_titles (;call_func;qsort_r' \
  '_start;load_plugins;main chunk (;history ('
if ! grep -q '[1-9][0-9]* .* titles = vim.fn.sort(titles)$' guide.log ||
  ! grep -q recent.lua nvim.html; then
  cat guide.log
  echo "FAIL: the line that sorts has no cost, or the plugin is not in the flame graph"
  exit 1
fi
