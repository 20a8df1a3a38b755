#!/bin/bash
# A preempted job saves in the grace time, is requeued and goes on, bit for bit.
. "$(dirname "$0")/train.sh"

# Twice in a row: the second start is one that was resumed.
preempt_twice() {
	local job=$1 start node
	for start in 1 2; do
		wait_file "^step $((start * 40 - 20)) " out 60
		node=$(slurm scontrol show hostnames "$(job_field "$job" NodeList)" | head -n 1)
		preempt "$node" >/dev/null
		wait_field "$job" Restarts "$start" 60
		tap_ok $? "${CASE##*/}: preemption $start requeues the job"
		[ -z "${after-}" ] || nothing_behind_ran "$after"
		wait_restart "$job" "$start" 120
	done
	tap_is "$(grep -c '^ckpt: stopping at step [0-9]* (signal 15): it resumes from step' "$CASE/out")" 2 \
		"${CASE##*/}: it says where it stopped"
	tap_is "$(grep -c '^ckpt: requeueing: signal 15, saved at step' "$CASE/out")" 2 \
		"${CASE##*/}: and that it was requeued"
}

# Two nodes, of which one is taken away; and lines behind srun.
new_run lines-behind
write_job job.sh -N2 -n4 --exclusive -- "$(train)" "${BEHIND[@]}"
job=$(submit job.sh)
after=$(submit_after "$job")
preempt_twice "$job"
run_is_exact "$job" 4 0
behind_ran_once "$job" "$after"

if full; then
	new_run plain
	after=''
	write_job job.sh -N1 -n2 --exclusive -- "$(train)"
	job=$(submit job.sh)
	preempt_twice "$job"
	run_is_exact "$job" 2 0

	# Without grace the tasks have KillWait seconds.
	new_run no-grace
	write_job job.sh -N1 -n2 --exclusive --partition=lowgrace0 -- "$(train)"
	job=$(submit job.sh)
	wait_file '^step 20 ' out 60
	preempt "$(job_field "$job" NodeList)" >/dev/null
	wait_restart "$job" 1 60
	tap_ok $? "no-grace: the job starts again"
	run_is_exact "$job" 2 0
fi
done_testing
