#!/usr/bin/env bash
# Two Grid Engine hosts for a test, each in a network namespace: runs a command on node1.
#
#   unshare --net --mount --pid --fork --mount-proc sge_cluster.sh FOLDER COMMAND...
#
# FOLDER receives Grid Engine's files. CAFFE_SGE_ROOT names a folder with Debian's packages
# gridengine-master, gridengine-exec, gridengine-client, gridengine-common, libmunge2, libtirpc3,
# libjemalloc2 and libhwloc15 (dpkg -x), if they are not installed. Nothing outside
# these namespaces and FOLDER changes, and nothing outlives the command.
set -euo pipefail

state="$1"
root="${CAFFE_SGE_ROOT:-}"
shift
programs="$root/usr/lib/gridengine"
library="$root/usr/lib/x86_64-linux-gnu"
export SGE_ROOT="$state/root" SGE_CELL=default SGE_ARCH=lx-amd64
export SGE_QMASTER_PORT=6444 SGE_EXECD_PORT=6445
export PATH="$programs:$PATH" LD_LIBRARY_PATH="$programs:$library"

mkdir -p "$state"/{master,spool,disk1,disk2} "$SGE_ROOT"/{bin,lib,utilbin,default/common}
# shellcheck source-path=SCRIPTDIR source=two_hosts.sh
. "$(dirname "$0")/two_hosts.sh"

# shellcheck disable=SC2016  # expanded in the namespace
on() {  # on I COMMAND...: on node I, with a disk of its own at /mnt.
  local i="$1"
  shift
  nsenter --net="/run/netns/$i" unshare --uts --mount \
    sh -c 'hostname "$0" && mount --bind "$1" /mnt && shift && exec "$@"' \
    "node$i" "$state/disk$i" "$@"
}

# A cell as Debian's init_cluster makes it, but for root.
for part in bin lib utilbin; do ln -s "$programs" "$SGE_ROOT/$part/$SGE_ARCH"; done
ln -s "$root/usr/share/gridengine/util" "$SGE_ROOT/util"
common="$SGE_ROOT/default/common"
shared="$root/usr/share/gridengine"
sed -e "s|^admin_user.*|admin_user none|; s|^spooling_params.*|spooling_params $state/spool|" \
  -e "s|^binary_path.*|binary_path $programs|; s|^qmaster_spool_dir.*|qmaster_spool_dir $state/master|" \
  "$shared/default-bootstrap" >"$common/bootstrap"
echo node1 >"$common/act_qmaster"
sed -e "s|^execd_spool_dir.*|execd_spool_dir $state/spool-of-hosts|; s|^min_\(.\)id.*|min_\1id 0|" \
  -e "s|^load_report_time.*|load_report_time 00:00:02|; s|^mailer.*|mailer /bin/true|" \
  "$shared/default-configuration" >"$state/configuration"
mkdir "$state/spool-of-hosts"
{
  on 1 spoolinit berkeleydb libspoolb "$state/spool" init
  on 1 spooldefaults.bin configuration "$state/configuration"
  on 1 spooldefaults.bin complexes "$shared/util/resources/centry"
  on 1 spooldefaults.bin usersets "$shared/util/resources/usersets"
  on 1 spooldefaults.bin managers root
} >"$state/init.out" 2>&1 || { cat "$state/init.out"; exit 1; }

on 1 sge_qmaster >"$state/qmaster.out" 2>&1
for _ in $(seq 50); do
  if on 1 qconf -ss >/dev/null 2>&1; then break; fi
  sleep 0.2
done

# The hosts, a parallel environment as examples/clusters/README.md describes it, and a queue.
on 1 qconf -as node1,node2 >"$state/qconf.out" 2>&1
on 1 qconf -ah node2 >>"$state/qconf.out" 2>&1
cat >"$state/mpi" <<CONF
pe_name            mpi
slots              1000
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    1
control_slaves     TRUE
job_is_first_task  FALSE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
CONF
cat >"$state/queue" <<CONF
qname                 all.q
hostlist              node1 node2
seq_no                0
load_thresholds       NONE
suspend_thresholds    NONE
nsuspend              1
suspend_interval      00:05:00
priority              0
min_cpu_interval      00:05:00
processors            UNDEFINED
qtype                 BATCH INTERACTIVE
ckpt_list             NONE
pe_list               mpi
rerun                 FALSE
slots                 2
tmpdir                /mnt
shell                 /bin/bash
prolog                NONE
epilog                NONE
shell_start_mode      posix_compliant
starter_method        NONE
suspend_method        NONE
resume_method         NONE
terminate_method      NONE
notify                00:00:60
owner_list            NONE
user_lists            NONE
xuser_lists           NONE
subordinate_list      NONE
complex_values        NONE
projects              NONE
xprojects             NONE
calendar              NONE
initial_state         default
s_rt                  INFINITY
h_rt                  INFINITY
s_cpu                 INFINITY
h_cpu                 INFINITY
s_fsize               INFINITY
h_fsize               INFINITY
s_data                INFINITY
h_data                INFINITY
s_stack               INFINITY
h_stack               INFINITY
s_core                INFINITY
h_core                INFINITY
s_rss                 INFINITY
h_rss                 INFINITY
s_vmem                INFINITY
h_vmem                INFINITY
CONF
on 1 qconf -ssconf | sed 's/^schedule_interval .*/schedule_interval 0:0:10/' >"$state/scheduler"
on 1 qconf -Msconf "$state/scheduler" >>"$state/qconf.out" 2>&1
on 1 qconf -Ap "$state/mpi" >>"$state/qconf.out" 2>&1
for i in 1 2; do on "$i" sge_execd >"$state/node$i.out" 2>&1; done
on 1 qconf -Aq "$state/queue" >>"$state/qconf.out" 2>&1
# Both hosts have reported their load.
for _ in $(seq 150); do
  if [ "$(on 1 qstat -f | grep -c 'lx-amd64 *$')" = 2 ]; then break; fi
  sleep 0.2
done
on 1 "$@"
