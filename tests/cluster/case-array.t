#!/bin/bash
# Each element of a job array is a run of its own; preempting one leaves the others alone.
. "$(dirname "$0")/train.sh"

new_run array
# One directory per element for the program's own files; the seed tells them apart.
write_job job.sh -N1 -n2 --array=0-3 --exclusive --output=out.%a --ckpt-dir="$CASE/ckpt" -- \
	'mkdir -p $SLURM_ARRAY_TASK_ID && ln -sf ../train ../inputs $SLURM_ARRAY_TASK_ID' \
	'cd $SLURM_ARRAY_TASK_ID' \
	"$(train --seed '1$SLURM_ARRAY_TASK_ID')"
array=$(submit job.sh)
wait_file '^step 10 ' out.2 120
preempt "$(job_field "${array}_2" NodeList)" >/dev/null
wait_restart "${array}_2" 1 60
tap_ok $? "the preempted element starts again"
full_speed
for element in 0 1 2 3; do
	job=${array}_$element
	wait_last_end "$job" 120
	restarts=0
	[ $element != 2 ] || restarts=1
	tap_is "$(outcome "$job")" \
		"COMPLETED 0:0 $restarts" "element $element: it completes, requeued $restarts times"
done
tap_is "$(cd "$CASE/ckpt" && echo *)" "mini-${array}_0 mini-${array}_1 mini-${array}_2 mini-${array}_3" \
	"each element has its own run"
case_dir=$CASE
for element in 0 1 2 3; do
	CASE=$case_dir/$element
	same_bits 2 0 --seed 1$element
done
CASE=$case_dir
done_testing
