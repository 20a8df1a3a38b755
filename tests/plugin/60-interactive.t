#!/bin/bash
# salloc and srun alone: everything but the requeue, and a line that says how to go on.
. "$(dirname "$0")/plugin.sh"

new_case alone
write_pretend
write program <<'END'
#!/bin/bash
env | grep '^SLURM_CKPT_' | sort >"env-$1"
./pretend open; ./pretend save 5; ./pretend mark requeue 5 "signal 15"
exit 75
END
text=$(said timeout 60 srun -J ckpt-interactive -n1 -t 2 --ckpt ./program one)
id=$(sed -n 's,^SLURM_CKPT_JOB=mini/\([0-9]*\)/0$,\1,p' "$CASE/env-one")
echo "$id" >>"$JOBS_FILE"
tap_like "$(cat "$CASE/env-one")" "SLURM_CKPT_DIR=$CASE/ckpt/mini-$id" "srun alone: a run in <cwd>/ckpt"
tap_like "$text" "srun: ckpt: checkpoints go to $CASE/ckpt;" "... which a notice names"
line=$(grep 'to go on' <<<"$text")
tap_is "$line" "ckpt: signal 15, saved at step 5; an interactive job is not requeued, to go on: srun --ckpt-name=mini-$id --ckpt-dir=$CASE/ckpt -J ckpt-interactive -n1 -t 2 --ckpt ./program one" \
	"... and one line says how to go on"
as_user sh -c "${line##*to go on: }" >/dev/null 2>&1
tap_like "$(cat "$CASE/env-one")" "SLURM_CKPT_DIR=$CASE/ckpt/mini-$id" "that line goes on in the same run"
tap_like "$(cat "$CASE/env-one")" "SLURM_CKPT_RESUME=$CASE/ckpt/mini-$id/step-0000000005\.g1" "... from its checkpoint"

new_case salloc
write_pretend
write program <<'END'
#!/bin/bash
env | grep '^SLURM_CKPT_' | sort >env-$1
END
text=$(said timeout 60 salloc -J ckpt-interactive -n1 -t 2 --ckpt-keep=4 --ckpt-dir=runs \
	bash -c 'echo "job $SLURM_JOB_ID"; cd /; srun -D "$1" ./program one; cd "$1"; srun --ckpt-keep=6 ./program two; exit 5' - "$CASE")
tap_is $? 5 "salloc: the command's exit code"
id=$(sed -n 's/^job //p' <<<"$text")
echo "$id" >>"$JOBS_FILE"
tap_like "$(cat "$CASE/env-one")" "SLURM_CKPT_DIR=$CASE/runs/mini-$id" "a step has the directory as salloc saw it"
tap_like "$(cat "$CASE/env-one")" "SLURM_CKPT_KEEP=4" "... and salloc's options"
tap_like "$(cat "$CASE/env-two")" "SLURM_CKPT_KEEP=6" "... unless srun has its own"
tap_is "$(grep -c 'requeue[di]' <<<"$text")" 0 "nobody speaks of requeueing"
no_drained
done_testing
