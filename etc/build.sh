# shellcheck shell=sh
# Builds of a source tree for the commands in etc/: flags, configure, compile, or both with a log.

# Print OpenResty's flags for LuaJIT: dual numbers, and the semantics of Lua 5.2.
openresty_flags() {
  echo '-DLUAJIT_NUMMODE=2 -DLUAJIT_ENABLE_LUA52COMPAT'
}

# configure SOURCE FOLDER [CMAKE ARGUMENT...]
configure() {
  configure_source=$1
  configure_folder=$2
  shift 2
  cmake -S "$configure_source" -B "$configure_folder" "$@"
}

# compile FOLDER [ARGUMENT OF cmake --build...]
compile() {
  compile_folder=$1
  shift
  cmake --build "$compile_folder" -j "$(nproc)" "$@"
}

# Make the folder and build all in it; LOG gets the output. Prints nothing, and returns the
# status: the commands report a failure in their own words.
# build_tree LOG SOURCE FOLDER [CMAKE ARGUMENT...]
build_tree() {
  build_log=$1
  shift
  mkdir -p "$2" && configure "$@" >"$build_log" 2>&1 && compile "$2" >>"$build_log" 2>&1
}
