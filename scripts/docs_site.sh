#!/usr/bin/env bash
# Builds the documentation site into build/site: the pages with search, and the API references.
#
#   scripts/docs_site.sh [--no-api]
#
#   --no-api   only the pages: needs neither Doxygen nor a build
#
# Broken links and anchors, and warnings of Doxygen, are errors. Search needs a server: python3 -m
# http.server --directory build/site. Needs scripts/install_dependencies.sh docs; the rest comes
# from the Python package index into build/docs-venv (docs/site/requirements.txt). The Python
# reference describes the built module (build/cpu-release, or CAFFE_BINARY_DIR).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

api=1
while [ $# -gt 0 ]; do
  case "$1" in
    --no-api) api= ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done

# environment FOLDER REQUIREMENTS: makes a virtual environment that can use the system's packages.
environment() {
  local python
  cmp -s "$2" "$1/requirements.txt" && return
  python=$(find_python venv ensurepip numpy google.protobuf)
  [ -n "$python" ] || { echo "no Python with venv, NumPy and protobuf: run scripts/install_dependencies.sh docs" >&2; exit 1; }
  "$python" -m venv --clear --system-site-packages "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
  cp "$2" "$1/requirements.txt"
}

environment build/docs-venv docs/site/requirements.txt
SITE_HAS_API=$api build/docs-venv/bin/mkdocs build --strict  # --quiet would hide the warnings that strictness counts

if [ -n "$api" ]; then
  version=$(scripts/release.sh version)
  mkdir -p build/site/api/cpp
  (cat docs/site/Doxyfile; echo "PROJECT_NUMBER = $version"; echo "OUTPUT_DIRECTORY = build/site/api/cpp"
   echo "WARN_AS_ERROR = FAIL_ON_WARNINGS") | doxygen -
  PYTHONPATH=python build/docs-venv/bin/pdoc --no-show-source --output-directory build/site/api/python caffe
  # pdoc does not know the parameters of the extension's functions; their docstrings begin with
  # them.
  find build/site/api/python -name '*.html' -exec sed -i 's|<span class="n">unknown</span>|...|' {} +
fi
echo "The site is in build/site; to read it: python3 -m http.server --directory build/site"
