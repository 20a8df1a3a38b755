#!/bin/bash
# Several steps at once: the last one that holds a run requeues, the others are not killed for it.
. "$(dirname "$0")/plugin.sh"

new_case claims
write_pretend
# A program that holds a run: saves at once when it finds ./stop-NAME, then needs a second for its mark.
write program <<'END'
#!/bin/bash
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
./pretend open
echo "$1 holds a run"
until [ -e "stop-$1" ]; do sleep 0.1; done
[ "$1" != slow ] || sleep 6
./pretend save 8; ./pretend mark requeue 8 "signal 15"
echo "$1 has saved"
exit 75
END
write monitor <<'END'
#!/bin/bash
while :; do sleep 1; done
END
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-steps -o out-%j -t 5 -n 3 --ckpt --ckpt-dir=runs
srun -n1 --exact --ckpt-name=fast ./program fast &
srun -n1 --exact --ckpt-name=slow ./program slow &
srun -n1 --exact ./monitor &
wait %1 %2
echo "after ${SLURM_RESTART_COUNT:-0}"
kill %3
END
job=$(submit_kept job.sh)
wait_file 'slow holds a run' "out-$job" 60
wait_file 'fast holds a run' "out-$job" 60
as_user touch stop-fast stop-slow
wait_restart "$job" 1 120
tap_ok $? "two steps with work left: the job is requeued"
tap_is "$(count_lines '^slow has saved' "out-$job")" 1 "... after the slower one has saved"
tap_like "$(grep 'waiting for step' "$CASE/out-$job")" 'ckpt: waiting for step [012] before the job is requeued' "... for which the other waited"
tap_like "$(count_lines '^ckpt: requeueing: signal 15, saved at step 8' "out-$job")" '^[12]$' "... which the last one says"
tap_is "$(count_lines '^after 0' "out-$job")" 0 "... no line after wait ran"
wait_end "$job" 120
tap_is "$(job_field "$job" JobState)" COMPLETED "the second start completes: a run that began before is found, a monitor holds none"

new_case phases
write program <<'END'
#!/bin/bash
[ "$SLURM_RESTART_COUNT" ] || exit 75
END
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-steps -o out-%j -t 5 --ckpt --ckpt-dir=runs
srun --ckpt-name=phase1 ./program || exit
srun --ckpt-name=phase2 ./program || exit
echo "both"
END
job=$(submit_kept job.sh)
wait_restart "$job" 1 120
wait_end "$job" 120
tap_is "$(count_lines '^both$' "out-$job")" 1 "a step that had not begun before the restart makes its run"
# srun's exit code is the highest of all ranks; ranks that exit one after the other must not hide 75.
new_case skew
write program <<'END'
#!/bin/bash
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
sleep 0.$((SLURM_PROCID * 3))
exit 75
END
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-steps -o out-%j -t 5 -N 2 -n 4 --ckpt --ckpt-dir=runs
srun ./program
echo "after ${SLURM_RESTART_COUNT:-0}: $?"
END
job=$(submit_kept job.sh)
wait_restart "$job" 1 120
tap_ok $? "ranks that exit with 75 within a second: requeued"
wait_end "$job" 120
tap_is "$(count_lines '^after' "out-$job")" 1 "... no line after srun ran in the first start"

# mpirun does not wait for its own srun, so the script has to stay until that has done its work.
new_case mpirun
write_pretend
write program <<'END'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
./pretend open; ./pretend save 3; ./pretend mark requeue 3 "time limit"
END
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-steps -o out-%j -t 5 -N 2 -n 2 --ckpt --ckpt-dir=runs
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
mpirun ./program
sleep 60
END
if command -v mpirun >/dev/null; then
	job=$(submit_kept job.sh)
	wait_restart "$job" 1 120
	tap_ok $? "mpirun on two nodes: its own srun requeues by the library's mark"
	wait_end "$job" 120
	tap_is "$(job_field "$job" JobState).$(job_field "$job" Restarts)" COMPLETED.1 "... once"
else
	tap_skip "mpirun" "no mpirun here"
fi
no_drained
done_testing
