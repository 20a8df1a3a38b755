#!/bin/bash
# One rank dies: the step ends within KillWait, the job fails as it would, and can be taken up again.
. "$(dirname "$0")/train.sh"

# Steps of 100 ms and more are agreed on in the same call, so the interval is kept to the step.
STEP_MS=110
KILL_WAIT=5	# as minicluster has it

# One rank on each of two nodes, and one more: the death is seen on another node too.
new_run plain
write_job job.sh -N2 -n3 -- "$(train)"
job=$(submit job.sh)
wait_file '^ckpt: saved step 2' out 60
pid=$(task_pid "$job" 2)
tap_like "$pid" '^[0-9]+$' "rank 2 is found"
kill -KILL "$pid"
killed=$SECONDS
wait_end "$job" 30
took=$((SECONDS - killed))
[ $took -le $((KILL_WAIT + 5)) ]
tap_ok $? "the job ends within KillWait and little more ($took s)"
# The rank's own; under Open MPI 5 the PMIx of the other ranks aborts the step, and srun exits with that.
tap_like "$(outcome "$job")" '^FAILED (137|14):0 0$' "it fails, and is not requeued"
code=$(job_field "$job" ExitCode)
wait_file "^ckpt: not requeued: exit code ${code%:*}; 'scontrol requeue' resumes the job" out 1
tap_ok $? "it says so with srun's exit code, which is the job's, and what can be done"
wait_file '^srun: error: n[0-9]+: task 2: Killed' out 1
tap_ok $? "and srun has named the rank that died"
tap_is "$(ls -d "$(run_dir)"/.saving-* 2>/dev/null)" '' "no save was cut"

as_user scontrol requeue "$job"
tap_ok $? "scontrol requeue"
wait_restart "$job" 1 60
run_is_exact "$job" 3 $MOST_LOST
done_testing
