#!/bin/bash
# A shard that is cut in the middle of its flush never belongs to a checkpoint.
. "$(dirname "$0")/train.sh"

# flushing: a third save is at work on a shard, and has written some of it.
flushing() {
	cut_file=$(compgen -G "$(run_dir)/.saving-*/rank-00002.0.safetensors") || return 1
	[ "$(run_steps | wc -l)" = 2 ] && [ "$(stat -c %s "$cut_file" 2>/dev/null || echo 0)" -gt 0 ]
}

# A rank is killed while it writes its shard, 8 KiB every 200 ms.
new_run flush
write_job job.sh -N1 -n4 -- \
	'slow="pwrite:*rank-00002*:cut=8192:delay=200"' \
	'[ -n "$SLURM_RESTART_COUNT" ] || export SLURM_CKPT_IO_FAULT="$slow"' "$(train)"
job=$(submit job.sh)
wait_file '^step 10 ' out 60
pid=$(task_pid "$job" 2) cut_file=''
poll 60 flushing && kill -KILL "$pid"
tap_ok $? "flush: two checkpoints are made; it is killed in the third"
wait_end "$job" 120
tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode)" 'FAILED 137:0' "flush: a rank dies of it"
whole=$(stat -c %s "$(newest_step)/rank-00002.0.safetensors") cut=$(stat -c %s "$cut_file")
[ "$cut" -lt "$whole" ]
tap_ok $? "flush: its shard is cut ($cut of $whole bytes), and not in a committed step"
tap_is "$(run_steps | wc -l)" 2 "flush: the two checkpoints are there"
newest=$(run_steps | tail -n 1)
as_user scontrol requeue "$job"
wait_restart "$job" 1 60
run_is_exact "$job" 4 $((2 * MOST_LOST))
wait_file "^ckpt: resumed at step $(step_number "$newest"), " out 1
tap_ok $? "flush: the newest of them is taken"
[ ! -e "$cut_file" ]
tap_ok $? "flush: the cut one is gone"

done_testing
