#!/usr/bin/env bash
# The list of packages that this project needs, under their Debian 12 and Ubuntu 24.04 names.
#
#   scripts/install_dependencies.sh           packages for building
#   scripts/install_dependencies.sh test      also those for the tests (scripts/test.sh)
#   scripts/install_dependencies.sh develop   also the formatter and linter (the commit hooks)
#   scripts/install_dependencies.sh fuzz      packages for building and for scripts/fuzz.sh
#   scripts/install_dependencies.sh docs      packages for building, scripts/docs_site.sh and
#                                             scripts/docs_images.py
#   scripts/install_dependencies.sh notebooks packages for building and for examples/notebooks, but
#                                             for Jupyter (containers/)
#   scripts/install_dependencies.sh video     packages for building and for videos (VideoData)
#   scripts/install_dependencies.sh onnx      also those for the tests of ONNX models: onnx and
#                                             onnxruntime, into build/onnx-venv
#   scripts/install_dependencies.sh studio    also those for the tests of caffe studio, serve and
#                                             sweep: Chromium, and packages into build/studio-venv
#   scripts/install_dependencies.sh cuda      packages for building; the header files of
#                                             cudnn-frontend and nvdisasm (scripts/check_sass.py),
#                                             into ~/.cache/cortado; get the CUDA toolkit and cuDNN 9
#                                             themselves from NVIDIA
#   scripts/install_dependencies.sh onednn3   packages for building; oneDNN 3.2, in addition to the
#                                             system's 2.x, in build/onednn, where CMake looks first
#
# Installs only what is missing, asks nothing, and prints nothing if nothing is missing.
set -euo pipefail

# "a|b": either package satisfies the requirement.
build=(
  build-essential 'cmake' 'ninja-build' ccache lld 'pkg-config|pkgconf' git ca-certificates
  file # cpack -G DEB
  libprotobuf-dev protobuf-compiler
  liblmdb-dev libleveldb-dev zlib1g-dev libcurl4-openssl-dev libssl-dev
  'libturbojpeg0-dev|libturbojpeg-dev' 'libjpeg-dev|libjpeg62-turbo-dev|libjpeg-turbo8-dev'
  libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev
  libgoogle-glog-dev libgflags-dev libcli11-dev libboost-dev
  libdnnl-dev libopenblas-dev libhdf5-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-dev pybind11-dev python3-numpy python3-protobuf
  python3-pil python3-sklearn python3-jinja2 # caffe new, caffe evaluate
)
test=(
  python3-pytest python3-pytest-xdist python3-lmdb python3-h5py python3-pydot graphviz
  python3-tqdm python3-matplotlib python3-nbclient python3-ipykernel python3-yaml
  python3-venv
  openmpi-bin libopenmpi-dev mpich libmpich-dev iproute2 shellcheck faketime stress-ng
  g++-aarch64-linux-gnu qemu-user
)
develop=(clang-format clang-tidy)
# Debian 12's first clang with half floats, or Ubuntu's default.
fuzz=('clang-16|clang-18' 'libclang-rt-16-dev|libclang-rt-18-dev' 'libomp-16-dev|libomp-18-dev')
docs=(doxygen python3-venv python3-yaml python3-pil python3-matplotlib)
notebooks=(python3-venv python3-matplotlib python3-ipykernel)
video=(libopencv-videoio-dev)
cuda=(python3-pip)
onnx=(python3-venv)
studio=(python3-venv chromium fonts-dejavu-core)
onednn3=(python3-pip)
# Wheels from the Python package index.
cudnn_frontend=nvidia-cudnn-frontend==1.23.0
onnx_wheels=(onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 protobuf==7.36.2 pytest==9.2.0 pytest-xdist==3.8.0)
studio_wheels=(nicegui==3.18.0 fastapi==0.165.0 uvicorn==0.54.0 httptools==0.9.0 uvloop==0.23.0
  orjson==3.13.0 prometheus-client==0.26.0 "tritonclient[http]==2.73.0" optuna==5.0.0 cmaes==0.13.1
  tokenizers==0.23.3 sentencepiece==0.2.3
  tsdownsample==0.1.5.1 playwright==1.65.2 httpx==0.28.1 numpy==2.4.6 protobuf==7.36.2 pillow==13.0.0
  jinja2==3.1.6 scikit-learn==1.9.1 onnx==1.23.2 pytest==9.2.0 pytest-xdist==3.8.0)
nvdisasm=nvidia-cuda-nvdisasm==13.2.86 # reads the code of every older toolkit
onednn3_wheels=(onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0) # oneDNN 3.2.0

what=${1:-build}
what=${what#--}
case "$what" in
  build) wanted=("${build[@]}") ;;
  docs) wanted=("${build[@]}" "${docs[@]}") ;;
  notebooks) wanted=("${build[@]}" "${notebooks[@]}") ;;
  video) wanted=("${build[@]}" "${video[@]}") ;;
  cuda) wanted=("${build[@]}" "${cuda[@]}") ;;
  onednn3) wanted=("${build[@]}" "${onednn3[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  onnx) wanted=("${build[@]}" "${test[@]}" "${onnx[@]}") ;;
  studio) wanted=("${build[@]}" "${test[@]}" "${studio[@]}") ;;
  develop) wanted=("${build[@]}" "${test[@]}" "${develop[@]}") ;;
  fuzz) wanted=("${build[@]}" "${fuzz[@]}") ;;
  *) sed -n '2,22s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

# Without apt there are no package names to compare with, so check for the tools themselves.
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  absent=()
  for tool in c++ cmake ninja git pkg-config protoc python3; do
    command -v "$tool" >/dev/null || absent+=("$tool")
  done
  for module in protobuf lmdb libturbojpeg libglog gflags CLI11; do
    pkg-config --exists "$module" 2>/dev/null || absent+=("$module (development files)")
  done
  [ ${#absent[@]} -eq 0 ] && exit 0
  {
    echo "This system has no apt-get, so install these yourself and run again:"
    printf '  %s\n' "${absent[@]}"
    echo "The full list, by its Debian names: ${wanted[*]}"
  } >&2
  exit 1
fi

installed=" $(dpkg-query -W -f '${db:Status-Abbrev}|${Package}\n' 2>/dev/null |
  sed -n 's/^ii *|//p' | tr '\n' ' ') "
missing=()
for entry in "${wanted[@]}"; do
  found=
  for name in ${entry//|/ }; do
    [[ "$installed" == *" $name "* ]] && found=1
  done
  [ -n "$found" ] || missing+=("${entry%%|*}")
done

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "Missing packages: ${missing[*]}" >&2
      echo "Neither root nor sudo: as root, run  apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0
       -o Acquire::Retries=2 -o Acquire::http::Timeout=20)
  "${apt[@]}" update </dev/null || echo "apt-get update failed; trying with the lists at hand" >&2
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null; then
    echo "Could not install: ${missing[*]}" >&2
    echo "Check the network and the package sources, then run this script again." >&2
    exit 1
  fi
fi

version=$(cmake --version | sed -n '1s/[^0-9]*//p')
if [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" != 3.25 ]; then
  echo "cmake 3.25 or newer is needed, but $(command -v cmake) is $version" >&2
  exit 1
fi

# fetch FOLDER ADVICE REQUIREMENT...: unpacks wheels into FOLDER, unless this was done already.
fetch() {
  local folder=$1 advice=$2 scratch wheel
  shift 2
  [ "$(cat "$folder/version" 2>/dev/null)" = "$*" ] && return
  echo "Fetching $* into $folder"
  scratch=$(mktemp -d)
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps \
       --only-binary :all: --dest "$scratch" "$@"; then
    echo "Could not fetch $*; check the network (pip's settings are honoured), or" >&2
    echo "$advice" >&2
    rm -rf "$scratch"
    exit 1
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  for wheel in "$scratch"/*.whl; do python3 -m zipfile -e "$wheel" "$folder"; done
  # Moves the files that a wheel installs into the root of an environment.
  for wheel in "$folder"/*.data/data; do
    if [ -d "$wheel" ]; then cp -R "$wheel"/. "$folder" && rm -rf "${wheel%/data}"; fi
  done
  rm -rf "$scratch"
  echo "$*" >"$folder/version"
}

if [ "$what" = cuda ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/cortado
  fetch "$cache/cudnn-frontend" \
    "point CMake at the headers: -DCUDNN_FRONTEND_INCLUDE_DIR=folder" "$cudnn_frontend"
  fetch "$cache/nvdisasm" "put the toolkit's nvdisasm into PATH" "$nvdisasm"
  chmod +x "$cache"/nvdisasm/nvidia/*/bin/nvdisasm # which zip files do not keep
fi
# environment NAME REQUIREMENT...: makes build/NAME-venv, unless this was done already. It is of the
# distribution's Python, for which the build makes package caffe.
environment() {
  local folder
  folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/$1-venv
  shift
  [ "$(cat "$folder/version" 2>/dev/null)" = "$*" ] && return
  echo "Installing $* into $folder"
  /usr/bin/python3 -m venv --clear "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
  echo "$*" >"$folder/version"
}
[ "$what" != onnx ] || environment onnx "${onnx_wheels[@]}"
[ "$what" != studio ] || environment studio "${studio_wheels[@]}"
if [ "$what" = onednn3 ]; then
  folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/onednn
  fetch "$folder" "point CMake at another one: -DONEDNN_INCLUDE_DIR=folder -DONEDNN_LIBRARY=file" \
    "${onednn3_wheels[@]}"
  # A wheel contains copies instead of symbolic links.
  (cd "$folder/lib" && rm -f libdnnl.so libdnnl.so.3.* && ln -s libdnnl.so.3 libdnnl.so)
  echo "A build folder that is configured already takes it with: cmake --fresh --preset cpu-release"
fi
