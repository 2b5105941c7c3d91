#!/usr/bin/env bash
# Builds and runs the tests.
#
#   scripts/test.sh [NAME... | --depth MINUTES | --all] [--plan] [--record] [--no-install]
#
#   (nothing)        the gate: what every change has to pass
#   --depth MINUTES  and then as much of the depth as that time allows: first what depends on a folder that
#                    has changed since it last passed, then what passed the longest time ago
#   --all            every proof there is, long ones too: hours
#   NAME             these proofs of tests/proofs.toml alone, as in  scripts/test.sh asan-nets
#   --plan           only print what would run, and why
#   --record         write what passed to tests/proofs.passed, to be committed; needs a clean work tree
#   --no-install     leave the system's packages alone
#
# Ends with what ran, what did not and why, and "N passed, N failed, N skipped". What was asked for and did not
# run has failed.
#
# Tests on real data look for it in the folder that CAFFE_TEST_DATA names (mnist/, cifar10/,
# imagenet-sample/ in it) and are skipped, with a message, where it is not.
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
# Interpreters would otherwise leave caches in the source tree.
export PYTHONDONTWRITEBYTECODE=1
# Nor do they run with what a user has as defaults.
export CAFFE_CONFIG=
python=$(find_python tomllib pytest numpy google.protobuf)
[ -n "$python" ] || { echo "no Python 3.11 or newer with pytest, NumPy and protobuf (scripts/install_dependencies.sh test)" >&2; exit 1; }
exec "$python" scripts/run_proofs.py ${options[@]:+"${options[@]}"}
