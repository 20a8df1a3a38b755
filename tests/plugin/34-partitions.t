#!/bin/bash
# Partitions of other kinds: OverTimeLimit counts; who is preempted by cancelling, without a grace time, is
# requeued.
. "$(dirname "$0")/plugin.sh"

# partition NAME NODE PARAMETER...
partition() { slurm scontrol create PartitionName="$1" Nodes="$2" PriorityTier=1 "${@:3}" >/dev/null; }
remove_partition() { slurm scontrol delete PartitionName="$1" >/dev/null 2>&1; }
remove_partitions() { for name in ckpt-over ckpt-cancel; do poll 30 remove_partition $name; done; }
trap 'set +e; slurm scancel -p ckpt-over; slurm scancel -p ckpt-cancel; remove_partitions; end_jobs' EXIT

new_case over
partition ckpt-over n1 OverTimeLimit=1
tap_ok $? "a partition with OverTimeLimit=1"
# Beyond 57 s, when a job of one minute would be requeued.
write program <<'END'
#!/bin/bash
echo "over ${SLURM_CKPT_OVERTIME:-}, until $SLURM_CKPT_END_TIME"
sleep 62
END
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-over -p ckpt-over -o out-%j -t 1 --ckpt --ckpt-dir=runs
srun ./program
echo "after ${SLURM_RESTART_COUNT:-0}: $?"
END
over=$(submit_kept job.sh)
over_case=$CASE

new_case cancelled
partition ckpt-cancel n4 PreemptMode=CANCEL GraceTime=0
tap_ok $? "a partition with PreemptMode=CANCEL, GraceTime=0"
write_stopper
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-cancelled -p ckpt-cancel -w n4 -o out-%j -t 5 --ckpt --ckpt-dir=runs
srun ./stopper
echo "after ${SLURM_RESTART_COUNT:-0}: $?"
END
job=$(submit_kept job.sh --exclusive)
wait_file '^over' "$over_case/out-$over" 60
tap_like "$(cat "$over_case/out-$over")" "over 60, until $(($(date -d "$(job_field "$over" EndTime)" +%s) + 60))" \
	"the tasks know when Slurm ends them"
wait_file 'stopper 0: start 0' "out-$job" 120 && preempt n4 1 >/dev/null
wait_field "$job" Restarts 1 60
tap_ok $? "preempted by cancelling: requeued"
tap_is "$(count_lines 'saving$' "out-$job" | grep -c '^[1-9]')" 1 "... it has saved"
tap_is "$(count_lines '^ckpt: requeueing: preempted' "out-$job")" 1 "... one line says so"
wait_restart "$job" 1 120
wait_end "$job" 120
tap_is "$(job_field "$job" JobState).$(job_field "$job" Restarts)" COMPLETED.1 "... it completes in its second start"
tap_is "$(count_lines '^after 0' "out-$job")" 0 "... no line after srun ran in the first"

wait_end "$over" 120
tap_is "$(outcome "$over")" "COMPLETED 0:0 0" "a job may end within OverTimeLimit"
tap_is "$(count_lines requeueing "../over/out-$over")" 0 "... and is not requeued before"
no_drained
done_testing
