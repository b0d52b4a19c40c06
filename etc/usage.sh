# shellcheck shell=sh
# For the commands of etc/ and etc/bench/: --help, and options that there are not.

# Of the arguments, --help prints the comment that the command begins with; any other
# option is a wrong one.
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
