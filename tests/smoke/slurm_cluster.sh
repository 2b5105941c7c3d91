#!/usr/bin/env bash
# Two Slurm nodes for a test, each in a network namespace: runs a command on node1.
#
#   unshare --net --mount --pid --fork --mount-proc slurm_cluster.sh FOLDER COMMAND...
#
# FOLDER receives Slurm's files. CAFFE_SLURM_ROOT names a folder with Debian's packages slurmctld,
# slurmd, slurm-client, slurm-wlm-basic-plugins, liblua5.1-0 and libpmix2 (dpkg -x), if they are not
# installed. Nothing outside these namespaces and FOLDER changes, and nothing outlives the command.
set -euo pipefail

state="$1"
root="${CAFFE_SLURM_ROOT:-}"
shift
export PATH="$root/usr/sbin:$root/usr/bin:$PATH" SLURM_CONF="$state/slurm.conf"
plugins="$root/usr/lib/x86_64-linux-gnu/slurm-wlm"
if [ -n "$root" ]; then export LD_LIBRARY_PATH="$root/usr/lib/x86_64-linux-gnu:$plugins"; fi

mkdir -p "$state"/{controller,node1,node2}
# shellcheck source-path=SCRIPTDIR source=two_hosts.sh
. "$(dirname "$0")/two_hosts.sh"

# Each node has its own temporary folder, with a short name, because PMIx puts sockets there.
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT
mkdir "$temporary"/node{1,2}

echo "CgroupPlugin=cgroup/v1" >"$state/cgroup.conf"
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=node1
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmctldPidFile=$state/controller.pid
SlurmctldLogFile=$state/controller.log
StateSaveLocation=$state/controller
SlurmdPidFile=$state/%h.pid
SlurmdLogFile=$state/%h.log
SlurmdSpoolDir=$state/%h
TmpFS=$temporary/%h
PluginDir=$plugins
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=node[1-2] CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF

# shellcheck disable=SC2016  # expanded in the namespace
on() {  # on I COMMAND...: on node I. Not `ip netns exec`, which hides /sys/fs/cgroup.
  local i="$1"
  shift
  nsenter --net="/run/netns/$i" unshare --uts sh -c 'hostname "$0" && exec "$@"' "node$i" "$@"
}
program() { command -v "$1-wlm" || command -v "$1"; }  # Debian's names have -wlm

on 1 "$(program slurmctld)" -D >"$state/controller.out" 2>&1 &
for _ in $(seq 50); do
  if on 1 scontrol ping >/dev/null 2>&1; then break; fi
  sleep 0.2
done
for i in 1 2; do
  on "$i" "$(program slurmd)" -D -d "$(program slurmstepd)" >"$state/node$i.out" 2>&1 &
done
for _ in $(seq 50); do
  if [ "$(on 1 sinfo --noheader --format=%D --states=idle)" = 2 ]; then break; fi
  sleep 0.2
done
on 1 "$@"
