#!/usr/bin/env bash
# Installs what Cortado builds and tests with: the only list of packages.
# Debian 12 and Ubuntu 24.04, as root or through sudo. Does nothing when all are there.
set -euo pipefail

packages=(
  # build
  build-essential cmake ninja-build ccache pkg-config git
  # schema, log, flags
  protobuf-compiler libprotobuf-dev libgoogle-glog-dev libgflags-dev libboost-dev
  # data
  liblmdb-dev libturbojpeg0-dev libhdf5-dev zlib1g-dev
  libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev
  # kernels
  libdnnl-dev
  # tests, examples
  libgtest-dev libgmock-dev python3 python3-numpy python3-protobuf python3-pytest python3-lmdb
)

# Debian and Ubuntu call TurboJPEG's development package differently.
alternative() {
  case "$1" in
    libturbojpeg0-dev) echo libturbojpeg-dev ;;
  esac
}

is_installed() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'
}

if ! command -v apt-get > /dev/null; then
  echo "install_dependencies: this system has no apt-get; install the equivalents of:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  for tool in cmake ninja protoc g++; do
    command -v "$tool" > /dev/null || { echo "install_dependencies: $tool is missing" >&2; exit 1; }
  done
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  other=$(alternative "$package")
  is_installed "$package" || { [ -n "$other" ] && is_installed "$other"; } || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || { echo "install_dependencies: run as root, or install sudo" >&2; exit 1; }
  sudo=(sudo)
fi
echo "Installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${sudo[@]}" apt-get update > "$log" 2>&1 || { tail -n 5 "$log" >&2; echo "install_dependencies: apt-get update failed, trying what is cached" >&2; }
for i in "${!missing[@]}"; do
  if ! apt-cache show "${missing[$i]}" > /dev/null 2>&1; then
    other=$(alternative "${missing[$i]}")
    [ -n "$other" ] && missing[i]=$other
  fi
done
if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" > "$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "install_dependencies: installing failed; packages: ${missing[*]}" >&2
  exit 1
fi
