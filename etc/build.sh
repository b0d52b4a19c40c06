# shellcheck shell=sh
# Builds of a source tree with their flags, and runs of its tests, for the commands in etc/.

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

# The value of an attribute in ctest's report.
report_count() {
  sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1
}

# The tests that failed in the last run of ctest in a build.
failed_names() {
  sed 's/^[0-9]*://' "$1/Testing/Temporary/LastTestsFailed.log"
}

# Run the tests of a build, and set tests_passed, tests_failed and tests_skipped. Up to five tests
# that fail beside others run once more, alone: a neighbour may have taken their time. The names
# of those that passed only then are in tests_alone. FOLDER/report.xml is ctest's report.
# run_tests FOLDER [ARGUMENT OF ctest...]
run_tests() {
  tests_build=$1
  shift
  tests_passed=0 tests_failed=1 tests_skipped=0 tests_alone=
  tests_report=$tests_build/report.xml
  tests_again=$tests_build/again.xml
  rm -f "$tests_report" "$tests_again"
  tests_broken=0
  # ctest counts quarters of processors, see test/CMakeLists.txt. Three tests that wait have a place
  # while others take all processors.
  ctest --test-dir "$tests_build" -j $((4 * $(nproc) + 3)) --output-on-failure \
    --output-junit "$tests_report" "$@" || tests_broken=1
  [ -f "$tests_report" ] || return 0
  # ctest's report lists skipped tests among all, not among the failed.
  tests_failed=$(report_count failures "$tests_report")
  if [ "$tests_failed" != 0 ] && [ "$tests_failed" -le 5 ]; then
    echo "== $tests_failed failed beside others; once more, alone"
    tests_first=$(failed_names "$tests_build")
    tests_broken=0
    ctest --test-dir "$tests_build" --rerun-failed --output-on-failure --output-junit "$tests_again" ||
      tests_broken=1
    # A test that is skipped now has not passed.
    [ ! -f "$tests_again" ] ||
      tests_failed=$(($(report_count failures "$tests_again") + $(report_count skipped "$tests_again")))
    tests_second=
    [ "$tests_failed" = 0 ] || tests_second=$(failed_names "$tests_build")
    for tests_name in $tests_first; do
      case " $(echo $tests_second) " in
        *" $tests_name "*) ;;
        *) tests_alone="$tests_alone $tests_name" ;;
      esac
    done
  fi
  tests_skipped=$(($(report_count skipped "$tests_report") + $(report_count disabled "$tests_report")))
  tests_passed=$(($(report_count tests "$tests_report") - tests_failed - tests_skipped))
  # ctest may fail for another reason than a test.
  [ "$tests_broken" = 0 ] || [ "$tests_failed" != 0 ] || tests_failed=1
}
