#!/bin/bash
# `ckpt save` makes a checkpoint while the job trains; `ckpt stop` saves, stops, and nothing requeues.
. "$(dirname "$0")/train.sh"

EVERY=10000

# listed NAME: the run's step and state as `ckpt ls` shows them.
listed() { as_user ckpt ls "$run" | awk 'NR > 3 && $1 ~ /^[0-9]+$/ { print $1, $NF }'; }

new_run asked
run=$CASE/ckpt/run
write_job job.sh -N2 -n4 --ckpt-name=run -- "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
tap_is "$(run_steps)" '' "no checkpoint is due"

as_user ckpt save "$run" >"$CASE/said"
tap_is "$? $(cat "$CASE/said")" "0 $run: taken: it saves at its next step" "ckpt save: the program takes the request"
wait_file '^ckpt: saved step' out 30
tap_ok $? "and saves"
saved=$(step_number "$(run_steps)")
tap_is "$(listed)" "$saved ok" "ckpt ls shows the checkpoint"
wait_file "^step $((saved / 10 * 10 + 10)) " out 30
tap_ok $? "it trains on"

as_user ckpt stop "$run" >"$CASE/said"
tap_is "$? $(cat "$CASE/said")" "0 $run: taken: it saves and stops at its next step, and is not requeued" \
	"ckpt stop: the program takes the request"
wait_end "$job" 60
tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode) $(job_field "$job" Restarts)" 'FAILED 75:0 0' \
	"the job ends, and is not requeued"
stopped=$(step_number "$(run_steps | tail -n 1)")
wait_file "^ckpt: stopping at step $stopped \(.*\): it resumes from step $stopped" out 1
tap_ok $? "it has saved the step at which it stopped"
wait_file "^ckpt: not requeued: ckpt stop, saved at step $stopped" out 1
tap_ok $? "it says why it is not requeued"
tap_is "$(tail -n 1 "$CASE/losses" | cut -d' ' -f1)" "$stopped" "no step was trained after that"
tap_is "$(listed)" "$stopped ok
$saved ok" "ckpt ls shows both checkpoints"

# A request nobody takes is an answer too, and is not left for the next start.
as_user ckpt stop "$run" >"$CASE/said" 2>&1
tap_is $? 1 "ckpt stop of a run that nobody has open: exit 1" || tap_diag "$(cat "$CASE/said")"
as_user scontrol requeue "$job"
wait_restart "$job" 1 60
run_is_exact "$job" 4 0
done_testing
