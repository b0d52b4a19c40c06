# shellcheck shell=sh
# Options of the commands in etc/ and etc/bench/: --help, and refusal of unknown options. Where the
# Lua modules of the tests are.

# Read the arguments. --help prints the comment at the beginning of the command. Any other
# option is an error.
usage() {
  for argument; do
    case $argument in
    --help)
      sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    -*)
      echo "$0: unknown option $argument; see --help" >&2
      exit 2
      ;;
    esac
  done
}

# Print the absolute path of a complete build folder. Usage:
# folder=$(build_folder FOLDER) || exit 2.
build_folder() {
  if ! [ -x "$1/bin/luajit" ]; then
    echo "$0: there is no $1/bin/luajit: build first, or name the build folder; see --help" >&2
    return 2
  fi
  (cd "$1" && pwd)
}

# End the command unless the value of an argument is a whole number above 0.
whole_number() {
  case $2 in
  '' | 0* | *[!0-9]* | ????????????*)
    echo "$0: $1: expected a whole number above 0 of at most 11 digits, got '$2'; see --help" >&2
    exit 2
    ;;
  esac
}

# Print the folders of the Lua modules of the tests, for LUA_PATH. Usage: test_modules SOURCE.
test_modules() {
  for test_room in helpers oracles programs; do
    printf '%s/?.lua;' "$1/test/lib/$test_room"
  done
}
