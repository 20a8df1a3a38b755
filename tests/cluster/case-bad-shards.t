#!/bin/bash
# A shard that is missing, or cut: the checkpoint is refused by name, the one before is taken.
. "$(dirname "$0")/train.sh"

# falls_back REASON: the job, requeued, refuses the newest checkpoint for REASON and takes the second.
falls_back() {
	as_user scontrol requeue "$job"
	wait_restart "$job" 1 60
	run_is_exact "$job" 4 $(($(step_number "$newest") - $(step_number "$second")))
	tap_like "$(grep '^ckpt: ' "$CASE/out" | head -n 1)" \
		"^ckpt: refused step $(step_number "$newest"): .*$1" \
		"${CASE##*/}: first the newest checkpoint is refused, by name"
	tap_like "$(grep '^ckpt: ' "$CASE/out" | sed -n 2p)" \
		"^ckpt: fell back to step $(step_number "$second"), .*: 1 newer refused" \
		"${CASE##*/}: then the one before is taken"
	[ -d "$(run_dir)/$newest" ]
	tap_ok $? "${CASE##*/}: the bad one is still there to be looked at"
}

new_run missing
stopped_job
rm "$(run_dir)/$newest/rank-00002.0.safetensors"
falls_back 'rank-00002.0.safetensors: '

new_run cut
stopped_job
truncate -s 80000 "$(run_dir)/$newest/rank-00002.0.safetensors"
falls_back 'rank-00002.0.safetensors: .*80000'

if full; then
	# Nothing good is left: that is no fresh start.
	new_run all-bad
	stopped_job
	for step in $(run_steps); do rm "$(run_dir)/$step/rank-00001.0.safetensors"; done
	as_user scontrol requeue "$job"
	wait_restart "$job" 1 60
	wait_end "$job" 120
	tap_is "$(job_field "$job" JobState) $(grep -c '^step ' "$CASE/out")" 'FAILED 0' \
		"all-bad: nothing is trained"
	tap_like "$(grep '^ckpt: cannot resume' "$CASE/out")" \
		'none of [0-9]+ checkpoints is good: .*rank-00001' \
		"all-bad: the reasons are given"
fi
done_testing
