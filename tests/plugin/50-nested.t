#!/bin/bash
# Jobs submitted from within a job: a plain one is untouched, one with --ckpt has a run of its own.
. "$(dirname "$0")/plugin.sh"

new_case nested
write inner.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-nested -o /dev/null -t 1
env | grep -E '^SLURM_(.*CKPT|KILL_BAD|OPEN_MODE)|_OPTION_ckpt' | sort >"$1"
END
write outer.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-nested -o out-%j -t 5 --ckpt-dir=outer-runs --ckpt-name=outer --ckpt-keep=9
env | grep -E '^SLURM_(.*CKPT|KILL_BAD|OPEN_MODE)' | sort >outer
sbatch --parsable inner.sh plain >>ids
sbatch --parsable --ckpt inner.sh own >>ids
srun -n1 sbatch --parsable inner.sh plain-step >>ids
srun -n1 sbatch --parsable --ckpt-keep=2 inner.sh own-step >>ids
SLURM_CKPT_TIMEOUT=77 sbatch --parsable inner.sh timeout >>ids
SLURM_KILL_BAD_EXIT=0 sbatch --parsable inner.sh kill >>ids
salloc -n1 srun sh -c "echo ran; env | grep -E '^SLURM_.*CKPT'" >alloc
echo end
END
job=$(submit_kept outer.sh)
wait_end "$job" 120
cat "$CASE/ids" >>"$JOBS_FILE"
while read -r inner; do wait_end "$inner" 120; done <"$CASE/ids"
tap_is "$(grep -c . "$CASE/ids")" 6 "six jobs were submitted from within one"
for name in SLURM_CKPT_NAME=outer SLURM_KILL_BAD_EXIT=1 SLURM_OPEN_MODE=a; do
	tap_like "$(cat "$CASE/outer")" "$name" "(the outer one has something to inherit: $name)"
done
tap_is "$(cat "$CASE/plain")" "" "a plain job from the batch script: nothing"
tap_is "$(cat "$CASE/plain-step")" "" "a plain job from a step: nothing"
tap_is "$(cat "$CASE/alloc")" "ran" "a plain salloc: nothing"
for what in own own-step; do
	id=$(sed -n 's,^SLURM_CKPT_JOB=mini/\([0-9]*\)/0$,\1,p' "$CASE/$what")
	tap_ok "grep -qx '$id' '$CASE/ids'" "$what: the seal is of the inner job"
	tap_is "$(sed -n 's/^SLURM_CKPT_DIR=//p' "$CASE/$what")" "$CASE/ckpt/mini-$id" "... its run is its own"
done
tap_is "$(sed -n 's/^SLURM_CKPT_KEEP=//p' "$CASE/own")" 3 "... the outer job's settings are not"
tap_is "$(sed -n 's/^SLURM_CKPT_KEEP=//p' "$CASE/own-step")" 2 "... but those of its own command line"
tap_is "$(cat "$CASE/timeout")" "SLURM_CKPT_TIMEOUT=77" "what a user sets for himself is handed on"

# The count of restarts is the outer job's: where sbatch takes it away, and where it does not.
new_case chain
write inner.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-nested -o out-%j -t 5 --open-mode=append
srun -n1 $1 bash -c 'echo "task ${SLURM_RESTART_COUNT:-0} $SLURM_CKPT_JOB"; [ "${SLURM_RESTART_COUNT:-0}" != 0 ] || exit 75'
echo after
END
export SLURM_RESTART_COUNT=3
first=$(submit_kept inner.sh --ckpt-dir=runs)
named=$(as_user sbatch --parsable inner.sh '--ckpt-dir=runs --ckpt-name=named' 2>>"$CASE/notices")
echo "$named" >>"$JOBS_FILE"
unset SLURM_RESTART_COUNT
for inner in "$first" "$named"; do
	wait_restart "$inner" 1 120
	wait_last_end "$inner" 120
	tap_is "$(outcome "$inner")" 'COMPLETED 0:0 1' "submitted from a job's later start: begins, is requeued, completes"
	tap_is "$(grep -E '^(task|after)' "$CASE/out-$inner")" "task 0 mini/$inner/0
task 1 mini/$inner/1
after" "... and counts its own starts"
done
no_drained
done_testing
