#!/usr/bin/env bash
# From a clone to a trained network: installs what is missing, builds, gets the MNIST digits, trains LeNet.
#
#   scripts/quickstart.sh [--mnist DIR] [--iterations N]
#
#   --mnist DIR      the four idx files of MNIST, gzipped or not (or set MNIST_DIR). Default:
#                    data/mnist, else a download, else, without a network, rendered digits
#   --iterations N   train for N iterations instead of 10,000
#
# Safe to run again: finished steps are skipped, and training resumes from its last snapshot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

mnist="${MNIST_DIR:-}" iterations=10000
while [ $# -gt 0 ]; do
  case "$1" in
    --mnist) mnist="${2:?--mnist needs a folder}"; shift ;;
    --mnist=*) mnist="${1#*=}" ;;
    --iterations) iterations="${2:?--iterations needs a number}"; shift ;;
    --iterations=*) iterations="${1#*=}" ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done
[[ "$iterations" =~ ^[1-9][0-9]*$ ]] || { echo "--iterations is '$iterations'; it takes a whole number from 1 up" >&2; exit 2; }

preset=cpu-release
bin="build/$preset/bin"
logs=build/quickstart
mkdir -p "$logs"

logged_step() {  # logged_step NAME LOG COMMAND...
  local name="$1" log="$2" start=$SECONDS
  shift 2
  echo "== $name (log: $log)"
  "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; echo "$name failed; the whole log is $log" >&2; return 1; }
  echo "   done in $(duration $((SECONDS - start)))"
}

# Shows the important lines of a training log: on a terminal one updated line, and the tests.
show_training() {
  local line iteration= loss= rate=
  while IFS= read -r line; do
    if [[ "$line" =~ Iteration\ ([0-9]+)\ \(([^ ]+)\ iter/s.*loss\ =\ ([^ ]+) ]]; then
      iteration="${BASH_REMATCH[1]}" rate="${BASH_REMATCH[2]}" loss="${BASH_REMATCH[3]}"
      [ -t 1 ] && printf '\r   iteration %s of %s, loss %s, %s iterations/s\033[K' "$iteration" "$iterations" "$loss" "$rate"
    elif [[ "$line" =~ Iteration\ ([0-9]+),\ Testing ]]; then
      iteration="${BASH_REMATCH[1]}"
    elif [[ "$line" =~ Test\ net\ output\ \#[0-9]+:\ accuracy\ =\ ([^ ]+) ]]; then
      [ -t 1 ] && printf '\r\033[K'
      echo "   iteration $iteration: test accuracy ${BASH_REMATCH[1]}"
    fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
}

bash scripts/install_dependencies.sh build

# Shows the progress of a build: on a terminal one updated line, elsewhere one line per quarter.
show_building() {
  local line quarter=0 start=$SECONDS
  while IFS= read -r line; do
    [[ "$line" =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    if [ -t 1 ]; then
      printf '\r   step %s of %s, %s\033[K' "${BASH_REMATCH[@]:1:2}" "$(duration $((SECONDS - start)))"
    elif [ $((4 * BASH_REMATCH[1] / BASH_REMATCH[2])) -gt "$quarter" ]; then
      quarter=$((4 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      echo "   step ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}, $(duration $((SECONDS - start)))"
    fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
}

# Builds what training and README's Python example need; README's next command builds the rest.
echo "== Building (log: $logs/build.log)"
start=$SECONDS
set +e
{ cmake --preset "$preset" &&
    cmake --build --preset "$preset" --parallel "$(job_count)" --target caffe_tool convert_mnist_data caffe_python
} 2>&1 </dev/null | tee "$logs/build.log" | show_building
status=${PIPESTATUS[0]}
set -e
if [ "$status" -ne 0 ]; then
  tail -n 30 "$logs/build.log" >&2
  echo "Building failed; the whole log is $logs/build.log" >&2
  exit 1
fi
echo "   done in $(duration $((SECONDS - start)))"

echo "== Digits"
python=$(find_python numpy)
[ -n "$python" ] || { echo "no Python with NumPy (scripts/install_dependencies.sh)" >&2; exit 1; }
found=$("$python" scripts/get_mnist.py ${mnist:+--mnist "$mnist"})
folder=$(sed -n 1p <<<"$found") digits=$(sed -n 2p <<<"$found")
echo "   $digits"

# The databases record which digits they hold; weights are valid only if they are newer than the
# databases.
source_note=examples/mnist/mnist_train_lmdb/source.txt
if [ "$(cat "$source_note" 2>/dev/null)" != "$folder" ]; then
  rm -rf examples/mnist/mnist_train_lmdb examples/mnist/mnist_test_lmdb
fi
if [ ! -f "$source_note" ] || [ ! -f examples/mnist/mnist_test_lmdb/data.mdb ]; then
  logged_step "Making databases" "$logs/databases.log" env CAFFE_BIN="$bin" bash examples/mnist/create_mnist.sh "$folder"
  echo "$folder" >"$source_note"
fi

weights="examples/mnist/lenet_iter_$iterations.caffemodel"
solver=examples/mnist/lenet_solver.prototxt
if [ "$weights" -nt "$source_note" ]; then
  echo "== Training: $weights already exists (delete it to train again)"
else
  if [ "$iterations" -ne 10000 ]; then
    sed "s/^max_iter: .*/max_iter: $iterations/" "$solver" >"$logs/solver.prototxt"
    solver="$logs/solver.prototxt"
  fi
  resume= from=0
  for state in examples/mnist/lenet_iter_*.solverstate; do
    at="${state##*_}" at="${at%.solverstate}"
    if [ "$state" -nt "$source_note" ] && [ "$at" -lt "$iterations" ] && [ "$at" -gt "$from" ]; then
      resume="$state" from="$at"
    fi
  done
  echo "== Training LeNet for $iterations iterations${resume:+, from $resume} (log: $logs/train.log)"
  start=$SECONDS
  set +e
  "$bin/caffe" train --solver="$solver" ${resume:+--snapshot="$resume"} 2>&1 </dev/null | tee "$logs/train.log" | show_training
  status=${PIPESTATUS[0]}
  set -e
  if [ "$status" -ne 0 ] || [ ! -f "$weights" ]; then
    tail -n 15 "$logs/train.log" >&2
    echo "Training ended early (status $status); run this again to resume from the last snapshot." >&2
    exit 1
  fi
  echo "   done in $(duration $((SECONDS - start)))"
fi

echo "== Testing"
"$bin/caffe" test --model=examples/mnist/lenet_train_test.prototxt --weights="$weights" --iterations=100 \
  >"$logs/test.log" 2>&1 </dev/null || { tail -n 15 "$logs/test.log" >&2; exit 1; }
accuracy=$(sed -n 's/.*\] accuracy = \([0-9.e+-]*\).*/\1/p' "$logs/test.log" | tail -n 1)
[ -n "$accuracy" ] || { echo "no accuracy in $logs/test.log" >&2; exit 1; }

cat <<END

Test accuracy: $accuracy
Digits:        $digits
Weights:       $weights

What to try next, with a folder of photographs for each class (photos/cat/1.jpg, photos/dog/1.jpg):
  export PATH="$PWD/build/tools:\$PATH"
  caffe new photos              # imports them, picks a net, writes the folder photos_model
  caffe train photos_model
  caffe evaluate photos_model   # accuracy, confusions and the worst mistakes, as one HTML page

Or with the digits:
  docs/getting_started.md                        # a net of your own
  PYTHONPATH=$PWD/python /usr/bin/python3 -c 'import caffe'   # README has an example
  build/tools/caffe plan examples/mnist/lenet_train_test.prototxt         # how the net was compiled
  build/tools/caffe train examples/mnist/lenet_multistep_solver.prototxt
  build/tools/caffe time benchmarks/nets/alexnet.prototxt --iterations=10
  cmake --build --preset $preset               # the other programs and the examples
  scripts/test.sh                                # build and run the tests
END
