#!/bin/bash
# Another number of ranks than saved is refused aloud, and nothing is harmed.
. "$(dirname "$0")/train.sh"

new_run world
stopped_job
before=$(cd "$(run_dir)" && find step-* -type f -exec sha256sum {} +)
mv "$CASE/job.sh" "$CASE/four.sh"
write_job eight.sh -N1 -n8 --ckpt-requeue=no --ckpt-name=run -- "$(train)"
job=$(submit eight.sh)
wait_end "$job" 120
tap_is "$(job_field "$job" JobState) $(grep -c '^step ' "$CASE/out")" 'FAILED 0' \
	"world: eight ranks do not take up what four saved"
tap_like "$(grep '^ckpt: cannot resume' "$CASE/out")" "$newest: saved by 4 ranks, this job has 8" \
	"world: and say so, with both sizes"
tap_is "$(cd "$(run_dir)" && find step-* -type f -exec sha256sum {} +)" "$before" "world: no checkpoint is touched"
job=$(submit four.sh)
run_is_exact "$job" 4 0

done_testing
