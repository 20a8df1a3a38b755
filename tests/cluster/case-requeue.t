#!/bin/bash
# scontrol requeue: the save is shorter than KillWait, so no step is lost.
. "$(dirname "$0")/train.sh"

requeue_it() {
	local job=$1
	wait_file '^step 20 ' out 60
	as_user scontrol requeue "$job"
	tap_ok $? "${CASE##*/}: scontrol requeue"
	wait_field "$job" Restarts 1 20
	[ -z "${after-}" ] || nothing_behind_ran "$after"
	wait_restart "$job" 1 60
	tap_ok $? "${CASE##*/}: the job starts again"
}

new_run plain
write_job job.sh -N2 -n4 -- "$(train)"
job=$(submit job.sh)
requeue_it "$job"
run_is_exact "$job" 4 0
tap_is "$(job_field "$job" Restarts)" 1 "plain: it was requeued once, not by the plugin too"

if full; then
	new_run lines-behind
	write_job job.sh -N1 -n2 -- "$(train)" "${BEHIND[@]}"
	job=$(submit job.sh)
	after=$(submit_after "$job")
	requeue_it "$job"
	run_is_exact "$job" 2 0
	behind_ran_once "$job" "$after"
fi
done_testing
