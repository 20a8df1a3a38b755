#!/bin/bash
# A job on four nodes loses one, and comes back on three: the state is dealt out anew, what is saved from
# then on is complete, and is itself resumed.
. "$(dirname "$0")/train.sh"

new_run shrink
write_job job.sh -N3-4 --ntasks-per-node=1 --exclusive -- \
	"srun --mpi=pmix ./train --steps $STEPS --step-ms $STEP_MS --text inputs/text --losses losses" \
	"srun --mpi=pmix true"
# The number of tasks follows the nodes that there are.
sed -i '/^#SBATCH -N3-4/s/$/\n#SBATCH --requeue/' "$CASE/job.sh"
job=$(submit job.sh)
wait_file '^step 30 ' out 60
tap_is "$(job_field "$job" NumNodes)" 4 "shrink: it begins on four nodes"
minicluster kill n4
wait_restart "$job" 1 90
tap_ok $? "shrink: n4 is dead, and the job runs again"
wait_file 'resumed at step' out 60
tap_like "$(grep '^ckpt: resumed' "$CASE/out")" 'saved .* by 4 ranks' "shrink: it resumes what four ranks saved"
tap_is "$(job_field "$job" NumNodes)" 3 "shrink: on three nodes"
wait_file "^step $((STEPS - 20)) " out 60
as_user scontrol requeue "$job"
wait_restart "$job" 2 90
wait_end "$job" 90
tap_is "$(job_field "$job" JobState)" COMPLETED "shrink: and finishes"
tap_like "$(grep '^ckpt: resumed' "$CASE/out" | tail -n 1)" 'saved .* by 3 ranks' \
	"shrink: what three ranks saved is resumed too"
tap_ok "as_user ckpt verify '$(run_dir)' >/dev/null" "shrink: every checkpoint verifies"
minicluster start n4
wait_node n4 'idle|mixed|allocated' 60
tap_ok $? "shrink: n4 is back"

done_testing
