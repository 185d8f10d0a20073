#!/usr/bin/env bash
# Builds everything and runs all tests: style, unit and system tests, the same unit tests under sanitizers.
# Usage: tools/test.sh [STAGE...]   stages: format release sanitize fuzz (the default, in this order), tidy (clang-tidy)
#   fuzz: $ASSAY_FUZZ_SECONDS (60) for each parser, as many at a time as there are processors
set -euo pipefail
cd "$(dirname "$0")/.."
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(format release sanitize fuzz)

sources() { git ls-files -- '*.cc' '*.h' '*.hpp' '*.cu' '*.cuh'; }

run_ctest() {  # preset, further ctest arguments; prints every skip with its reason
  local preset=$1 log status=0
  shift
  log=build/$preset/ctest.log
  ctest --preset "$preset" -j "$(nproc)" --output-log "$log" --output-junit "ctest.xml" "$@" >"$log.console" 2>&1 || status=$?
  if [ $status -ne 0 ]; then
    cat "$log.console"
  else
    tail -n 3 "$log.console"
  fi
  python3 tools/list_skips.py "build/$preset/ctest.xml" || status=1
  return $status
}

stage_format() {
  sources | xargs clang-format --dry-run --Werror
  echo "format: $(sources | wc -l) files clean"
}
stage_release() {
  # The first command of the README has no test packages: it must configure without them.
  cmake --preset release -B build/newcomer -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON >build/newcomer.log 2>&1 ||
    { cat build/newcomer.log; return 1; }
  ninja -C build/newcomer -t targets all >/dev/null
  tools/build.sh ci -DASSAY_BENCH=ON
  run_ctest ci
}
stage_sanitize() {
  tools/build.sh ci-sanitize
  run_ctest ci-sanitize
}
stage_fuzz() {  # with the libraries of the stage before
  cmake --preset ci-sanitize >build/fuzz.log 2>&1 || { cat build/fuzz.log; return 1; }
  cmake --build build/ci-sanitize --target fuzz -j "$(nproc)" -- --quiet
  python3 tools/fuzz/run.py --seconds "${ASSAY_FUZZ_SECONDS:-60}" --jobs "$(nproc)"
}
stage_tidy() {
  [ -f build/ci/compile_commands.json ] || tools/build.sh ci -DASSAY_BENCH=ON
  git ls-files -- '*.cc' | xargs -P "$(nproc)" -n 4 clang-tidy -p build/ci --quiet --extra-arg=-Wno-unknown-warning-option >build/ci/tidy.log 2>build/ci/tidy.err ||
    { grep -E 'error|warning' build/ci/tidy.log build/ci/tidy.err; return 1; }
  echo "tidy: $(git ls-files -- '*.cc' | wc -l) files clean"
}

for stage in "${stages[@]}"; do
  case $stage in
    format | release | sanitize | fuzz | tidy) mkdir -p build; echo "== $stage"; "stage_$stage" ;;
    *) echo "test.sh: unknown stage '$stage' (known: format release sanitize fuzz tidy)" >&2; exit 2 ;;
  esac
done
echo "all stages passed: ${stages[*]}"
