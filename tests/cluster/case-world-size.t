#!/bin/bash
# Another number of ranks than saved: refused aloud with --ckpt-world=fixed, and nothing is harmed; by
# default the state is dealt out to the ranks that there are, and training goes on.
. "$(dirname "$0")/train.sh"

new_run world
stopped_job
before=$(cd "$(run_dir)" && find step-* -type f -exec sha256sum {} +)
mv "$CASE/job.sh" "$CASE/four.sh"
write_job eight.sh -N1 -n8 --ckpt-world=fixed --ckpt-requeue=no --ckpt-name=run -- "$(train)"
job=$(submit eight.sh)
wait_end "$job" 120
tap_is "$(job_field "$job" JobState) $(grep -c '^step ' "$CASE/out")" 'FAILED 0' \
	"world: eight ranks do not take up what four saved"
tap_like "$(grep '^ckpt: cannot resume' "$CASE/out")" "$newest: saved by 4 ranks, this job has 8" \
	"world: and say so, with both sizes"
tap_is "$(cd "$(run_dir)" && find step-* -type f -exec sha256sum {} +)" "$before" "world: no checkpoint is touched"
job=$(submit four.sh)
run_is_exact "$job" 4 0

# The same state on 8, then on 3 ranks. Without dropout the loss does not depend on who trains what.
new_run any
train_any() { train --dropout 0; }
write_job four.sh -N2 -n4 --ckpt-name=run --ckpt-requeue=no -- "$(train_any)"
job=$(submit four.sh)
wait_file '^step 20 ' out 60
as_user scancel --signal=TERM "$job.0"
wait_end "$job" 60
stopped=$(step_number "$(run_steps | tail -n 1)")
write_job eight.sh -N2 -n8 --ckpt-name=run --ckpt-requeue=no -- "$(train_any)"
job=$(submit eight.sh)
wait_file 'resumed at step' out 60 && wait_file '^step 40 ' out 60
as_user scancel --signal=TERM "$job.0"
wait_end "$job" 60
tap_like "$(grep '^ckpt: resumed' "$CASE/out" | tail -n 1)" "resumed at step $stopped, saved .* by 4 ranks" \
	"any: eight ranks resume what four saved"
write_job three.sh -N2 -n3 --ckpt-name=run -- "$(train_any)"
job=$(submit three.sh)
full_speed
wait_end "$job" 90
tap_is "$(job_field "$job" JobState)" COMPLETED "any: three ranks go on from what eight saved, and finish"
tap_like "$(grep '^ckpt: resumed' "$CASE/out" | tail -n 1)" "by 8 ranks" "any: and say so"
tap_is "$(cut -d' ' -f1 "$CASE/losses" | sort -n | uniq -d | wc -l)" 0 "any: no step is lost or done twice"
tap_ok "as_user ckpt verify '$(run_dir)' >/dev/null" "any: every checkpoint verifies"
reference=$(reference 4 --dropout 0)
tap_ok "python3 $SUPPORT/loss_curves.py '$CASE/losses' '$reference/losses' 0.05" \
	"any: the loss curve is that of four undisturbed ranks"

done_testing
