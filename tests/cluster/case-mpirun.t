#!/bin/bash
# mpirun in the place of srun: periodic saves, the time limit and the resume hold. A preemption's SIGTERM
# ends Open MPI's daemons, and on one node nobody is told of it: an interval is lost at most.
. "$(dirname "$0")/train.sh"

command -v mpirun >/dev/null || tap_skip_all "no mpirun here"

# start NAME SBATCH-OPTION...: on several nodes mpirun starts its daemons by an srun of its own, which
# requeues; it does not wait for that one, so the script has to stay a while.
start() {
	new_run "$1"
	shift
	write_job job.sh --ckpt-name=run "$@" -- "$(train | sed 's/^srun --mpi=pmix/mpirun --oversubscribe/')" \
		'status=$?; [ $SLURM_NNODES = 1 ] || [ $status = 0 ] || sleep 60; exit $status'
	job=$(submit job.sh)
}

# goes_on SECONDS: it starts again, and has lost an interval at most.
goes_on() {
	wait_restart "$job" 1 "$1"
	tap_ok $? "${CASE##*/}: the job starts again"
	run_is_exact "$job" 4 $MOST_LOST
	tap_like "$(head -n 1 "$(run_dir)/.gen-1/events.jsonl")" '"launcher".*started by mpirun, not srun' \
		"${CASE##*/}: the first event tells that it is mpirun"
	tap_is "$(grep -c '^ckpt: resumed at step [1-9]' "$CASE/out") $(job_field "$job" Restarts)" '1 1' \
		"${CASE##*/}: it was requeued once, and has resumed"
}

start one-node -N1 -n4
wait_file '^ckpt: saved step' out 60
tap_ok $? "one-node: there are periodic saves"
as_user scontrol requeue "$job"
goes_on 60

start two-nodes -N2 --ntasks-per-node=2 --exclusive
wait_file '^ckpt: saved step' out 60
tap_ok $? "two-nodes: there are periodic saves"
preempt "$(job_field "$job" BatchHost)" >/dev/null
goes_on 90

if full; then
	# Without a word to the tasks until the grace time is over.
	start one-node-preempted -N1 -n4 --exclusive
	wait_file '^step 20 ' out 60
	preempt "$(job_field "$job" BatchHost)" >/dev/null
	goes_on 120

	# The time limit is known without a signal; on one node nobody requeues, but the user may.
	start one-node-limit -N1 -n4 --time=1 --ckpt-margin=45s
	start=$CASE first=$job
	start two-nodes-limit -N2 --ntasks-per-node=2 --time=1 --ckpt-margin=45s
	wait_file '^ckpt: stopping at step [0-9]+ \(time limit\)' out 60
	tap_ok $? "two-nodes-limit: it saves and stops before the time limit"
	goes_on 90
	CASE=$start job=$first
	wait_end "$job" 60
	tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode)" 'FAILED 75:0' "one-node-limit: the job ends with 75"
	as_user scontrol requeue "$job"
	goes_on 60
fi
done_testing
