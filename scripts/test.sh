#!/usr/bin/env bash
# Builds and runs the tests.
#
#   scripts/test.sh [NAME... | --depth MINUTES | --all] [--plan] [--record] [--no-install]
#
#   (nothing)        the gate: the tests that every change has to pass
#   --depth MINUTES  then as much of the depth as that time allows: first proofs that depend on a
#                    folder that has changed since they last passed, then those with the oldest pass
#   --all            all proofs, including long ones: takes hours
#   NAME             only these proofs of tests/proofs.toml, as in  scripts/test.sh asan-nets
#   --plan           only print what would run, and why
#   --record         write passed proofs to tests/proofs.passed, to be committed; needs a clean work tree
#   --no-install     do not install system packages
#
# Ends with what ran, what did not and why, and "N passed, N failed, N skipped". Requested proofs
# that did not run count as failed.
#
# Tests on real data look for it in the folder CAFFE_TEST_DATA (mnist/, cifar10/, imagenet-sample/
# in it) and are skipped, with a message, if it is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

install=1 options=()
for option; do
  case "$option" in
    --no-install|--plan) install= ;;&
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
    *) options+=("$option") ;;
  esac
done
[ -z "$install" ] || bash scripts/install_dependencies.sh test
# Keeps interpreters from leaving caches in the source tree.
export PYTHONDONTWRITEBYTECODE=1
# Keeps the user's configuration from affecting the tests.
export CAFFE_CONFIG=
python=$(find_python tomllib pytest numpy google.protobuf)
[ -n "$python" ] || { echo "no Python 3.11 or newer with pytest, NumPy and protobuf (scripts/install_dependencies.sh test)" >&2; exit 1; }
exec "$python" scripts/run_proofs.py ${options[@]:+"${options[@]}"}
