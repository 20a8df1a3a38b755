#!/bin/bash
# A finished job that is started again says so, and does nothing.
. "$(dirname "$0")/train.sh"

STEPS=30

new_run finished
write_job job.sh -N1 -n2 -- "$(train)"
job=$(submit job.sh)
run_is_exact "$job" 2 0
before=$(cd "$(run_dir)" && ls -d step-*; cat "$CASE/losses")
rm "$CASE/final"

as_user scontrol requeue "$job"
tap_ok $? "scontrol requeue of the completed job"
wait_restart "$job" 1 60
wait_end "$job" 120
tap_is "$(outcome "$job")" \
	'COMPLETED 0:0 1' "it completes at once"
wait_file "^already complete at step $STEPS\$" out 1
tap_ok $? "the program says that it is complete"
wait_file "^ckpt: complete: this run finished at step $STEPS, in " out 1
tap_ok $? "so does the library"
tap_is "$(cd "$(run_dir)" && ls -d step-*; cat "$CASE/losses")" "$before" \
	"no step is trained, no checkpoint made"
cmp "$CASE/final" "$(reference 2)/final"
tap_ok $? "the state it has is the final one"
done_testing
