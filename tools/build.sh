#!/usr/bin/env bash
# Configures and builds one preset. Usage: tools/build.sh [PRESET] [CMAKE_OPTION...]   (default preset: release)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
log=build/$preset/configure.log
mkdir -p "build/$preset"
if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
grep -E '^-- assay:' "$log" || true
cmake --build "build/$preset" -j "$(nproc)" -- --quiet
