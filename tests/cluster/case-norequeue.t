#!/bin/bash
# --ckpt-requeue=no: saved, not requeued; the user may.
. "$(dirname "$0")/train.sh"

# not_requeued JOB: it fails with the program's 75 and says why; afterwards it can be taken up.
not_requeued() {
	local job=$1
	wait_end "$job" 120
	tap_is "$(outcome "$job")" \
		'FAILED 75:0 0' "${CASE##*/}: the job ends with the program's exit code"
	wait_file '^ckpt: not requeued: --ckpt-requeue=no' out 1
	tap_ok $? "${CASE##*/}: it says why it is not requeued"
	as_user scontrol requeue "$job"
	wait_restart "$job" 1 60
	run_is_exact "$job" 2 0
}

new_run preempted
write_job job.sh -N1 -n2 --exclusive --ckpt-requeue=no -- "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
preempt "$(job_field "$job" NodeList)" >/dev/null
not_requeued "$job"

if full; then
	new_run timelimit
	write_job job.sh -N1 -n2 --time=1 --ckpt-margin=40s --ckpt-requeue=no -- "$(train)"
	job=$(submit job.sh)
	not_requeued "$job"
fi
done_testing
