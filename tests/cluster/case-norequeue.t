#!/bin/bash
# --ckpt-requeue=no: saved, not requeued, in no release of Slurm; the user may.
. "$(dirname "$0")/train.sh"

BY_REQUEUE="'scontrol requeue' resumes the job" BY_SBATCH='submit it again with --ckpt-name=mini-[0-9]* to resume'
# From 24.05 on Slurm calls a job PREEMPTED that ends in the grace time, and would requeue it.
end_in_grace='FAILED 75:0 0' way=$BY_REQUEUE
newer_than_slurm 24.04 && end_in_grace='PREEMPTED 0:0 0' way=$BY_SBATCH

# not_requeued JOB OUTCOME REASON WAY
not_requeued() {
	wait_end "$1" 120
	tap_is "$(outcome "$1")" "$2" "${CASE##*/}: the job ends, and is not requeued"
	wait_file "^ckpt: not requeued: $3; $4" out 1
	tap_ok $? "${CASE##*/}: it says why, and how to go on"
}

# taken_up JOB WAY: by its user, in the way that was said.
taken_up() {
	local job=$1
	if [ "$2" = "$BY_REQUEUE" ]; then
		as_user scontrol requeue "$job"
		wait_restart "$job" 1 60
	else
		job=$(submit job.sh --ckpt-name="mini-$job")
	fi
	run_is_exact "$job" 2 0
}

start_and_preempt() { # NAME SBATCH-OPTION...
	new_run "$1"
	shift
	write_job job.sh -N1 -n2 --exclusive "$@" -- "$(train)"
	job=$(submit job.sh)
	wait_file '^step 20 ' out 60
	preempt "$(job_field "$job" NodeList)" >/dev/null
}

start_and_preempt preempted --ckpt-requeue=no
not_requeued "$job" "$end_in_grace" '--ckpt-requeue=no' "$way"
taken_up "$job" "$way"

start_and_preempt slurms-own --no-requeue
not_requeued "$job" "$end_in_grace" 'the job was submitted with --no-requeue' "$BY_SBATCH"
taken_up "$job" "$BY_SBATCH"

if full; then
	new_run timelimit
	write_job job.sh -N1 -n2 --time=1 --ckpt-margin=40s --ckpt-requeue=no -- "$(train)"
	job=$(submit job.sh)
	not_requeued "$job" 'FAILED 75:0 0' '--ckpt-requeue=no' "$BY_REQUEUE"
	taken_up "$job" "$BY_REQUEUE"
fi
done_testing
