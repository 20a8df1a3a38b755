#!/bin/bash
# A job saves before its time limit, is requeued and goes on.
. "$(dirname "$0")/train.sh"

# The shortest limit is a minute; with 45 s kept free the job stops after 15 s, having wanted 40.

limit_it() {
	local job=$1
	wait_field "$job" Restarts '[1-9]' 60
	tap_ok $? "${CASE##*/}: the time limit requeues the job"
	[ -z "${after-}" ] || nothing_behind_ran "$after"
	wait_file '^ckpt: stopping at step [0-9]+ \(time limit\): it resumes from step' out 1
	tap_ok $? "${CASE##*/}: it says why it stopped"
}

new_run lines-behind
write_job job.sh -N1 -n2 --time=1 --ckpt-margin=45s -- "$(train)" "${BEHIND[@]}"
job=$(submit job.sh)
after=$(submit_after "$job")
limit_it "$job"
run_is_exact "$job" 2 0
behind_ran_once "$job" "$after"

# Limits that an administrator sets while the job runs are seen within a minute: by the library, in time
# for a save, and by srun for programs without it. Both at once, to wait once.
new_run lowered
# shellcheck disable=SC2016
write_job other.sh -N1 -n1 --time=INFINITE --output=other -- '[ "$SLURM_RESTART_COUNT" ] || echo "begun"' \
	'[ "$SLURM_RESTART_COUNT" ] || srun sleep 300'
write_job job.sh -N1 -n2 --time=INFINITE --ckpt-margin=80s -- "$(STEP_MS=300 train)"
other=$(submit other.sh)
job=$(submit job.sh)
wait_file '^begun' other 60
wait_file '^step 20 ' out 60
slurm scontrol update jobid="$other" TimeLimit=1
slurm scontrol update jobid="$job" TimeLimit=2
wait_field "$job" Restarts '[1-9]' 120
tap_ok $? "lowered: the job is requeued"
wait_file '^ckpt: stopping at step [0-9]+ \(time limit\): it resumes from step' out 1
tap_ok $? "lowered: it has saved"
run_is_exact "$job" 2 0
wait_field "$other" Restarts '[1-9]' 120
tap_ok $? "lowered: so is one without the library"
wait_file '^ckpt: requeueing: time limit$' other 1
tap_ok $? "lowered: ... by srun"

if full; then
	new_run plain
	after=''
	write_job job.sh -N2 -n4 --time=1 --ckpt-margin=45s -- "$(train)"
	job=$(submit job.sh)
	limit_it "$job"
	run_is_exact "$job" 4 0

	# A limit that is extended in time is no reason to stop.
	new_run extended
	write_job job.sh -N1 -n2 --time=1 --ckpt-margin=45s -- "$(train)"
	job=$(submit job.sh)
	wait_file '^step 20 ' out 60
	slurm scontrol update jobid="$job" TimeLimit=10
	wait_file '^step 300 ' out 60
	run_is_exact "$job" 2 0
	tap_is "$(job_field "$job" Restarts)" 0 "extended: the job ran in one piece"
fi
done_testing
