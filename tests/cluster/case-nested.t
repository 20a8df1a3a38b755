#!/bin/bash
# A job submitted from inside a job with --ckpt is a job of its own; the user's CKPT_DIR is the user's.
. "$(dirname "$0")/train.sh"

STEPS=40

new_run outer
mkdir "$CASE/weights" && chown ckptuser: "$CASE/weights"
# shellcheck disable=SC2016
{
	write_job plain.sh --no-ckpt -n1 --output=plain.out -- \
		'env >plain.batch' 'srun sh -c "env >plain.task"'
	write_job inner.sh -n2 --output=inner.out --ckpt -- 'srun -n1 sh -c "env >inner.task"' "$(train)"
	sed -i 's/losses losses/losses inner.losses/; s/final final/final inner.final/' "$CASE/inner.sh"
	write_job job.sh -n2 --ckpt-name=outer --ckpt-keep=2 -- 'export CKPT_DIR=$PWD/weights' \
		'sbatch --parsable plain.sh >plain.id' 'sbatch --parsable inner.sh >inner.id' \
		'srun -n1 sh -c "env >outer.task"' "$(train)"
}
job=$(submit job.sh)
run_is_exact "$job" 2 0
plain=$(cat "$CASE/plain.id") inner=$(cat "$CASE/inner.id")
printf '%s\n' "$plain" "$inner" >>"$JOBS_FILE"
wait_end "$plain" 60
wait_end "$inner" 60

tap_is "$(job_field "$plain" JobState)" COMPLETED "a plain job from inside completes"
tap_is "$(grep -hiE 'ckpt_|KILL_BAD_EXIT|^SBATCH_' "$CASE"/plain.{batch,task} | grep -v '^CKPT_DIR=')" '' \
	"it has nothing of the outer job's"
tap_is "$(job_field "$inner" JobState)" COMPLETED "a job with --ckpt from inside completes"
tap_is "$(grep -E '^SLURM_CKPT_(DIR|JOB|NAME|KEEP|RESUME)=' "$CASE/inner.task" | sort)" \
	"SLURM_CKPT_DIR=$CASE/ckpt/mini-$inner
SLURM_CKPT_JOB=mini/$inner/0
SLURM_CKPT_KEEP=3
SLURM_CKPT_NAME=mini-$inner" "it has its own run, and its own settings"
tap_is "$(cd "$CASE/ckpt" && echo *)" "mini-$inner outer" "there are two runs"
for run in "mini-$inner" outer; do
	tap_is "$(cd "$CASE/ckpt/$run" && echo .gen-*)" .gen-1 "$run was opened once"
	grep -q '"committed": *true' "$CASE/ckpt/$run/run.json"
	tap_ok $? "$run has its checkpoints"
done
cmp "$CASE/inner.final" "$CASE/final"
tap_ok $? "both have trained"

tap_is "$(grep -h '^CKPT_DIR=' "$CASE"/{outer,plain,inner}.task | sort -u)" "CKPT_DIR=$CASE/weights" \
	"the user's CKPT_DIR is passed on as it is"
tap_is "$(ls -A "$CASE/weights")" '' "and nothing is put there"
done_testing
