# luacheck has no warning about any Lua file of the repository, by .luacheckrc.
# BASE: none, it reads the text of our sources only

set -u
command -v luacheck >/dev/null || {
  echo "skipped: luacheck is missing, install the Debian package 'lua-check'"
  exit 77
}
cd "$SYSPROF_SOURCE" || exit 1
luacheck --no-color -q --codes tools test etc doc
