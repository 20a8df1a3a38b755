#!/bin/bash
# A job on four nodes loses one, and comes back on the three that are left: the state is dealt out anew,
# what is saved from then on is complete, and is itself resumed.
. "$(dirname "$0")/train.sh"

STEP_MS=110

# One task a node, on as many nodes as there are; --ntasks-per-node would make Slurm take three of four.
new_run shrink
write_job job.sh -N3-4 --exclusive -- "$(train --dropout 0)"
job=$(submit job.sh)
wait_file '^ckpt: saved step 2' out 60
tap_is "$(job_field "$job" NumNodes)" 4 "it begins on four nodes"
minicluster kill n4 >/dev/null
wait_restart "$job" 1 90
tap_ok $? "n4 dies, and the job runs again"
wait_file '^ckpt: resumed at step' out 60
tap_is "$(job_field "$job" NumNodes)" 3 "on three nodes"
tap_like "$(grep '^ckpt: resumed' "$CASE/out")" 'saved .* by 4 ranks' "it resumes what four ranks saved"

wait_file '^ckpt: saved step 1[0-9]{2} ' out 60
as_user scontrol requeue "$job"
wait_restart "$job" 2 90
full_speed
wait_last_end "$job" 90
tap_is "$(outcome "$job")" 'COMPLETED 0:0 2' "it is requeued once more, and finishes"
tap_like "$(grep '^ckpt: resumed' "$CASE/out" | tail -n 1)" 'resumed at step [1-9][0-9]{2}, saved .* by 3 ranks' \
	"what three ranks saved is resumed too"
as_user ckpt verify "$(run_dir)" >"$CASE/verify" 2>&1
tap_ok $? "every checkpoint verifies" || tap_diag "$(cat "$CASE/verify")"
# Of a step done twice the last counts.
python3 "$SUPPORT/loss_curves.py" "$CASE/losses" "$(reference 4 --dropout 0)/losses" 0.05
tap_ok $? "the loss curve is that of four undisturbed ranks"
minicluster start n4 >/dev/null
tap_ok $? "n4 boots"
done_testing
