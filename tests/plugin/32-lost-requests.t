#!/bin/bash
# A request to slurmctld, or its answer, is lost: the job is looked up before the next one. It is requeued
# once, and a cancel that came meanwhile wins.
. "$(dirname "$0")/plugin.sh"

preload=$MINICLUSTER_DIR/opt/lib/lost_requeue.so
[ -e "$preload" ] || tap_skip_all "$preload is not there: tests/cluster/install"

# lose HOW: a job whose first request is lost in this way. `exec`: srun outlives a cancel by KillWait.
lose() {
	new_case "$1"
	write program <<-'END'
	#!/bin/bash
	[ "$SLURM_RESTART_COUNT" ] || exit 75
	END
	write job.sh <<-END
	#!/bin/bash
	#SBATCH -J ckpt-lost -o out-%j -t 5 --ckpt --ckpt-dir=runs
	export LOST_REQUEUE=${1%%-*} LOST_REQUEUE_DIR=$CASE
	${2-} env LD_PRELOAD=$preload srun ./program
	echo "after \${SLURM_RESTART_COUNT:-0}: \$?"
	END
	jobs[$1]=$(submit_kept job.sh)
	cases[$1]=$CASE
}
at() { CASE=${cases[$1]} job=${jobs[$1]} out=out-${jobs[$1]}; }
let_go() { touch "$CASE/go"; }
is_lost() { [ -e "$CASE/lost" ]; }
declare -A jobs cases
lose request-cancelled exec
lose reply-cancelled exec
lose request
lose reply
lose forgotten

# Within KillWait of the cancel, or srun is no danger any more.
for name in reply-cancelled request-cancelled; do
	at $name
	poll 60 is_lost
	tap_ok $? "${name%-*} lost: the request is on its way"
	slurm scancel "$job"
	let_go
done
for name in reply-cancelled request-cancelled; do
	at $name
	wait_end "$job" 60
	tap_is "$(job_field "$job" JobState)" CANCELLED "${name%-*} lost, the job is cancelled: it stays cancelled"
done

for name in request reply forgotten; do
	at $name
	poll 60 is_lost
	let_go
done
for name in request reply forgotten; do
	at $name
	wait_field "$job" Restarts 1 60
	tap_ok $? "$name lost: requeued all the same"
	wait_restart "$job" 1 120
	wait_end "$job" 120
	tap_is "$(job_field "$job" JobState).$(job_field "$job" Restarts)" COMPLETED.1 "... once"
	tap_is "$(count_lines '^ckpt: requeueing' "$out")" 1 "... one line says so"
	tap_is "$(count_lines '^after 0' "$out")" 0 "... no line after srun ran in the first start"
done
no_drained
done_testing
