#!/bin/bash
# Three starts from one checkpoint without a newer one: the fourth is held, with the reason.
. "$(dirname "$0")/train.sh"

# start NUMBER: the job is requeued, starts again, and resumes from the same checkpoint.
start() {
	as_user scontrol requeue "$job"
	wait_restart "$job" "$1" 60
	poll 60 eval "[ \$(grep -c '^ckpt: resumed at step $step,' '$CASE/out') = $2 ]"
	tap_ok $? "start $1 after the first: it resumes at step $step"
}

comment() { slurm scontrol show job "$1" | sed -n 's/^ *Comment=//p'; }

# The fourth start is over in a second, which a poll may miss.
fourth_is_over() { job_field_is "$job" Restarts 5 || { hurry "$job"; return 1; }; }

# Saves fail as long as there is a file `broken`.
new_run stuck
write_job job.sh -N1 -n2 --ckpt-name=run -- \
	'[ ! -e broken ] || export SLURM_CKPT_IO_FAULT="pwrite:*.safetensors:errno=ENOSPC"' "$(train)"
job=$(submit job.sh)
wait_file '^ckpt: saved step' out 60
as_user touch broken
as_user scontrol requeue "$job"
wait_restart "$job" 1 60
wait_file '^ckpt: resumed at step' out 60
step=$(step_number "$(run_steps | tail -n 1)")
start 2 2
start 3 3
tap_is "$(grep -c '^ckpt: cannot resume' "$CASE/out")" 0 "three starts are allowed"
as_user scontrol requeue "$job"
poll 60 fourth_is_over
wait_state "$job" PENDING 60
tap_like "$(job_field "$job" JobState) $(job_field "$job" Reason) $(job_field "$job" Priority)" \
	'^PENDING (JobHeldUser|job_requeued_in_held_state) 0$' "the fourth is requeued and held"
tap_like "$(comment "$job")" "no progress: started 3 times from step $step" "its comment names the reason"
wait_file "^ckpt: requeueing, held: no progress: started 3 times from step $step without saving a newer one" out 1
tap_ok $? "so does its output"
wait_file "^ckpt: 'scontrol release' lets the job try again" out 1
tap_ok $? "and tells what to do"
tap_is "$(grep -c "^ckpt: resumed at step" "$CASE/out")" 3 "it did not train"

rm "$CASE/broken"
as_user scontrol release "$job"
tap_ok $? "scontrol release"
full_speed
wait_last_end "$job" 120
tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode)" 'COMPLETED 0:0' "then it goes on and completes"
same_bits 2 $((4 * STEPS))

# A time limit that leaves no time to train: each start commits a step, and is no progress all the same.
short_is_held() { [ "$(job_field "$job" Priority)" = 0 ] || { hurry "$job"; return 1; }; }

new_run short
write_job job.sh -N1 -n2 --time=1 -- "$(train)"
job=$(submit job.sh)
poll 120 short_is_held
wait_state "$job" PENDING 10
tap_is "$(job_field "$job" Restarts)" 3 "short: three starts, then it is held"
tap_like "$(comment "$job")" 'the time limit is too short: 3 starts in a row.*time limit 60 s, --ckpt-margin 60 s' \
	"short: its comment has the arithmetic"
tap_is "$(grep -c '^ckpt: warning: [0-9]* s are left until the time limit, and the margin before it is 60 s' "$CASE/out")" 3 \
	"short: each start warns of it"
tap_like "$(cat "$CASE/submit.err")" 'the time limit of 60 s minus --ckpt-margin of 60 s' "short: so did sbatch"
done_testing
