#!/bin/bash
# A node whose slurmd hangs does not hear of the requeue. Its script must not go on beside the job's next start:
# srun ends it, once Slurm has the job elsewhere.
. "$(dirname "$0")/../plugin/plugin.sh"

slurmd_of() { pgrep -f "^slurmd -D -N $1\$" | head -1; }
slurmd=$(slurmd_of n4)
[ -n "$slurmd" ] || tap_skip_all "no slurmd of n4"
trap 'kill -CONT "$slurmd"; end_jobs' EXIT

new_case orphan
write program <<'END'
#!/bin/bash
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
echo "running"
until [ -e go ]; do sleep 0.1; done
exit 75
END
# The marks of what runs are files: slurmctld gives the output file to the next start.
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-orphan -o out-%j -t 5 --ckpt --ckpt-dir=runs
echo $$ >"script-${SLURM_RESTART_COUNT:-0}"
srun ./program
touch "after-${SLURM_RESTART_COUNT:-0}"
END
job=$(submit_kept job.sh -w n4)
wait_file '^running' "out-$job" 60
kill -STOP "$slurmd"
# Elsewhere, or the next start waits for this node.
touch "$CASE/go"
wait_file '^ckpt: requeueing: exit code 75' "out-$job" 60
tap_ok $? "requeued, by a node whose slurmd hangs"
wait_node n4 'down.*' 60
tap_ok $? "... which goes down"
wait_file '^ckpt: the job has left this node' "out-$job" 90
tap_ok $? "srun ends the script that was left behind, and says so"
poll 30 eval "! pgrep -u ckptuser -f 'slurmd/job|slurm_script' >/dev/null"
tap_is "$(cd "$CASE" && echo after-0*)" "after-0*" "... no line after srun ran in it"
kill -CONT "$slurmd"
wait_node n4 'idle|mixed|allocated' 60
tap_ok $? "the node comes back"
slurm scancel "$job"
done_testing
