#!/usr/bin/env bash
# A Slurm of two nodes, n1 and n2, on this one machine, for tests: no systemd, everything below one folder, on loopback.
#   cluster.sh start FOLDER      prints the path of slurm.conf once both nodes are idle
#   cluster.sh node FOLDER NAME  starts slurmd NAME again
#   cluster.sh fail FOLDER NAME  what a power cut does to a node: slurmd and all that it started are gone
#   cluster.sh controller FOLDER up|down
#   cluster.sh stop FOLDER       stops all of it
# Exit code 77: it cannot be started here; the reason is the last line of stderr.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

cannot() { echo "no Slurm for tests here: $*" >&2; exit 77; }

# Process ids whose environment has the word $1.
with_environment() {
  { grep -lzxF -- "$1" /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d / -f 3 | grep -vx $$ | sort || true
}

# Process ids of tasks of node $1.
tasks_of() { comm -12 <(with_environment "SLURMD_NODENAME=$1") <(with_environment "SLURM_CONF=$folder/slurm.conf"); }

# Process ids that have the file $1 open: slurmd, and slurmstepd, which hides its environment.
with_open_file() {
  { find /proc/[0-9]*/fd -lname "$1" 2>/dev/null || true; } | cut -d / -f 3 | sort -u
}

kill_all() { local pid; for pid in "$@"; do kill -KILL "$pid" 2>/dev/null || true; done; }

# Daemons have CLUSTER_OF_TESTS=FOLDER in their environment, those of a node its log open as well; tasks have
# SLURMD_NODENAME=NAME and SLURM_CONF.
start_node() {
  env -i PATH="$PATH" SLURM_CONF="$folder/slurm.conf" CLUSTER_OF_TESTS="$folder" \
    slurmd -f "$folder/slurm.conf" -N "$1" >>"$folder/$1.out" 2>&1 </dev/null
}

start_controller() {
  env -i PATH="$PATH" CLUSTER_OF_TESTS="$folder" slurmctld -f "$folder/slurm.conf" >>"$folder/slurmctld.out" 2>&1 </dev/null
}

write_config() {
  local ports real
  real=$(hostname -s)
  read -r -a ports < <(python3 -c '
import socket
held = [socket.socket() for _ in range(3)]
for one in held: one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in held])')
  cat >"$folder/slurm.conf" <<END
ClusterName=tests
SlurmctldHost=$real(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=2,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=300
MaxArraySize=4
KillWait=2
SlurmdTimeout=6
SlurmctldTimeout=10
MessageTimeout=5
TCPTimeout=2
InactiveLimit=0
OverTimeLimit=0
UnkillableStepTimeout=10
NodeName=n1 NodeHostname=$real NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=4 RealMemory=4096 State=UNKNOWN
NodeName=n2 NodeHostname=$real NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=4 RealMemory=4096 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
PartitionName=short Nodes=n1,n2 MaxTime=1 State=UP
END
}

start() {
  [ "$(id -u)" = 0 ] || cannot "root is needed to start its daemons"
  local program
  for program in munged slurmctld slurmd sinfo python3; do
    command -v "$program" >/dev/null || cannot "$program is not installed (tools/setup.sh --dev)"
  done
  mkdir -p "$folder"/munge "$folder"/state "$folder"/spool.n1 "$folder"/spool.n2
  chmod 755 "$folder" "$folder"/munge
  write_config
  (umask 077 && head -c 128 /dev/urandom >"$folder/munge/key")
  env CLUSTER_OF_TESTS="$folder" munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --num-threads=2 \
    >"$folder/munge/out" 2>&1 </dev/null || cannot "munged: $(tail -n 1 "$folder/munge/out")"
  start_controller || cannot "slurmctld: $(tail -n 1 "$folder/slurmctld.out")"
  start_node n1 || cannot "slurmd: $(tail -n 1 "$folder/n1.out")"
  start_node n2 || cannot "slurmd: $(tail -n 1 "$folder/n2.out")"
  local i
  for ((i = 0; i < 150; ++i)); do
    [ "$(SLURM_CONF="$folder/slurm.conf" sinfo -h -p all -o '%T %D' 2>/dev/null)" = 'idle 2' ] && { echo "$folder/slurm.conf"; return; }
    sleep 0.2
  done
  cannot "the nodes did not get idle in 30 s: $(tail -n 1 "$folder/slurmctld.log")"
}

[ $# -ge 2 ] || { sed -n '2,9s/^# //p' "$0" >&2; exit 2; }
folder=$2
case $1 in
  start) (start) || { code=$?; "$0" stop "$folder"; exit $code; } ;;
  node) start_node "$3" ;;
  fail)
    for ((i = 0; i < 3; ++i)); do # what was just being forked is found in the next round
      kill_all $(with_open_file "$folder/slurmd.$3.log") $(tasks_of "$3")
    done
    ;;
  controller)
    if [ "$3" = up ]; then start_controller; else kill_all "$(cat "$folder/slurmctld.pid")"; fi
    ;;
  stop)
    for ((i = 0; i < 3; ++i)); do
      kill_all $(with_environment "CLUSTER_OF_TESTS=$folder") $(with_open_file "$folder/slurmd.*.log") \
        $(tasks_of n1) $(tasks_of n2)
    done
    ;;
  *) echo "cluster.sh: unknown word '$1'" >&2; exit 2 ;;
esac
