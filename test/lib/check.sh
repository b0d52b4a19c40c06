# shellcheck shell=bash
# What fails in a test that is written in bash is said, and the test goes on; it ends
# with the status.

status=0

fail() {
  echo "FAIL: $*"
  status=1
}
