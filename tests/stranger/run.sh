#!/usr/bin/env bash
# A user's first day, on a bare Debian 12 with only this repository: each step is timed,
# and the commands that the user types are counted. Runs as root; takes about an hour on two cores.
#
#   tests/stranger/run.sh [--root DIR] [--mnist DIR] [--photographs DIR] [--steps NAME,...]
#
#   --root DIR         where debootstrap creates the system (build/stranger/root); an existing one is used again
#   --mnist DIR        MNIST's four files; without it the quickstart downloads or renders digits
#   --photographs DIR  a folder with a folder of images per class, for `caffe data import`; without it rendered ones
#   --steps NAMES      some of: quickstart python old_script wheel plan import train; without quickstart, the
#                      checkout of the previous run is used
#
# Mounts are made in a separate namespace, and vanish with it. Exits with 1 if a step fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/common.sh

root=build/stranger/root mnist="" photographs="" steps=quickstart,python,old_script,wheel,plan,import,train
while [ $# -gt 0 ]; do
  case "$1" in
    --root|--mnist|--photographs|--steps) printf -v "${1#--}" '%s' "${2:?$1 needs a value}"; shift ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done
[ "$(id -u)" -eq 0 ] || { echo "run this as root: it makes a system of its own (debootstrap, chroot)" >&2; exit 2; }

if [ -z "${STRANGER_NAMESPACE:-}" ]; then  # mounts vanish with this namespace
  STRANGER_NAMESPACE=1 exec unshare --mount --fork --kill-child tests/stranger/run.sh --root "$root" --steps "$steps" \
    ${mnist:+--mnist "$mnist"} ${photographs:+--photographs "$photographs"}
fi

if [ ! -e "$root/etc/debian_version" ]; then
  command -v debootstrap >/dev/null || apt-get install -y -q debootstrap >/dev/null
  echo "== debootstrap"
  mkdir -p "$root"
  debootstrap --variant=minbase bookworm "$root" http://deb.debian.org/debian >"$root.log" 2>&1 ||
    { tail "$root.log" >&2; exit 1; }
fi
root=$(cd "$root" && pwd)
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -d /usr/local/share/ca-certificates ] || cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root/home/user" "$root/media/mnist" "$root/media/photographs"
[ -z "$mnist" ] || mount --bind "$mnist" "$root/media/mnist"
[ -z "$photographs" ] || mount --bind "$photographs" "$root/media/photographs"
case ",$steps," in
  *,quickstart,*) rm -rf "$root/home/user/cortado"; git clone -q . "$root/home/user/cortado" ;;
esac
cp tests/stranger/steps.sh "$root/home/user/steps.sh"

failed=0
printf '%-12s %9s %9s  %s\n' step commands time result
for step in ${steps//,/ }; do
  start=$SECONDS status=0
  chroot "$root" env -i HOME=/home/user PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive MNIST_DIR="${mnist:+/media/mnist}" PHOTOGRAPHS="${photographs:+/media/photographs}" \
    ${PIP_CERT:+PIP_CERT="$PIP_CERT"} \
    bash /home/user/steps.sh "$step" </dev/null >"$root.$step.log" 2>&1 || status=$?
  result=$(grep '^RESULT ' "$root.$step.log" | tail -n 1 || true)
  [ "$status" -eq 0 ] || { failed=1; result="RESULT FAILED with status $status; see $root.$step.log"; }
  printf '%-12s %9s %9s  %s\n' "$step" "$(grep -c '^\$ ' "$root.$step.log" || true)" \
    "$(duration $((SECONDS - start)))" "${result#RESULT }"
done
exit "$failed"
