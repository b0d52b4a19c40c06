# shellcheck shell=bash
# Checks for the tests in shell: fail prints a message, and the test goes on. The test ends
# with $status.

status=0

fail() {
  echo "FAIL: $*"
  status=1
}
