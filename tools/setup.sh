#!/usr/bin/env bash
# Installs the Debian packages that assay needs. Usage: tools/setup.sh [--dev]
#   --dev  also what the tests and style checks need (GoogleTest, clang-format, clang-tidy, Chromium, Slurm, ...)
set -euo pipefail

packages=(g++ cmake ninja-build ccache pkg-config git ca-certificates
  libboost-dev libboost-program-options-dev libboost-filesystem-dev libboost-system-dev
  libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libspdlog-dev libpcre2-dev libssl-dev libcurl4-openssl-dev zlib1g-dev)
case "${1:-}" in
  "") ;;
  --dev) packages+=(libgtest-dev libgmock-dev libbenchmark-dev clang libclang-rt-dev clang-format clang-tidy lld python3
    python3-yaml python3-jsonschema libxml2-utils chromium openssl slurm-wlm munge) ;;
  *) echo "setup.sh: unknown option '$1' (known: --dev)" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: not root and no sudo: install ${missing[*]} by hand" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
