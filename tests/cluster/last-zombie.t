#!/bin/bash
# A node loses its network, not the parallel file system: its ranks train on while the job runs
# elsewhere already. What they save then is not published, and they do not requeue the new start.
. "$(dirname "$0")/train.sh"

STEPS=1500

heal() { minicluster heal "$zombie_node" >/dev/null; }

leave() {
	local status=$?
	heal
	(exit $status)
	end_jobs
}

new_run cut
write_job job.sh -N1 -n4 --exclusive --ckpt-name=run -- "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
zombie_node=$(job_field "$job" NodeList)
pid=$(task_pid "$job" 0)
minicluster cut "$zombie_node" >/dev/null
trap leave EXIT
tap_ok $? "$zombie_node, with all ranks, is cut off"
wait_field "$job" Restarts 1 90
tap_ok $? "Slurm requeues the job"
# Not on that node again, when it is back: its slurmd may still take the job for running there.
slurm scontrol update jobid="$job" ExcNodeList="$zombie_node" StartTime=now
kill -0 "$pid" 2>/dev/null
tap_ok $? "the ranks that were cut off train on"
poll 60 job_field_is "$job" JobState RUNNING
tap_ok $? "the job starts again"
[ "$(job_field "$job" NodeList)" != "$zombie_node" ]
tap_ok $? "on another node"
wait_file '^ckpt: resumed at step [1-9]' out 60
tap_ok $? "and resumes"

wait_file 'a newer generation than 1 has taken over this run' out 30
tap_ok $? "the old ranks are fenced at their next save, and say so"
wait_file "srun: error: $zombie_node: tasks? [0-9,-]*: Exited with exit code 1\$" out 30
tap_ok $? "they exit with 1, not with 75"
poll 30 eval "! kill -0 $pid 2>/dev/null"
tap_ok $? "they are gone"
resumed=$(sed -n "s/^ckpt: resumed at step \([0-9]*\),.*/\1/p" "$CASE/out" | head -n 1)
tap_is "$(run_steps | grep '\.g1$' | while read -r name; do [ "$(step_number "$name")" -le "$resumed" ] || echo "$name"; done)" '' \
	"nothing of theirs is published after the resume at step $resumed"
heal
wait_node "$zombie_node" 'idle|mixed|allocated|completing' 60
tap_ok $? "$zombie_node is back"
full_speed
wait_last_end "$job" 120
restarts=$(job_field "$job" Restarts)
# The old srun, whose ranks have failed, has slurmctld end step 0 of this job. That is the new start's by
# now, if it still runs: Slurm tells them apart by nothing. So it may save and be requeued once more, by
# its own srun.
tap_like "$(job_field "$job" JobState) $(job_field "$job" ExitCode) $restarts" '^COMPLETED 0:0 [12]$' "the new start completes"
tap_is "$(grep -c '^ckpt: requeueing' "$CASE/out") $(grep -cE '^ckpt: requeueing: signal 15, saved at step' "$CASE/out")" \
	"$((restarts - 1)) $((restarts - 1))" "the old srun has not requeued it"
same_bits 4 $MOST_LOST
next=$(submit job.sh)
wait_end "$next" 60
tap_is "$(cd "$(run_dir)" && compgen -G '.saving-*'; compgen -G '.gen-1/records-*')" '' "the next start sweeps what they had written"
done_testing
