#!/bin/bash
# The environment of tasks: complete with --ckpt, and without it what it is without the plugin.
. "$(dirname "$0")/plugin.sh"

new_case variables
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-env -o out-%j -t 5 --ckpt-dir=runs
env | grep -E '^SLURM_(CKPT_|KILL_BAD|JOB_ID)' | sort >batch
srun -n1 env | grep '^SLURM_CKPT_' | sort >step
mkdir $SLURM_CKPT_DIR/step-0000000007.g1 $SLURM_CKPT_DIR/step-0000000009.g1
srun -n1 env | grep '^SLURM_CKPT_' | sort >later
srun -n1 --ckpt=off env | grep -E '^SLURM_CKPT_|_OPTION_ckpt' | grep -v KILL_BAD | sort >off
srun -n1 --ckpt-name=other --ckpt-keep=9 env | grep '^SLURM_CKPT_' | sort >other
SRUN_CKPT_KEEP=8 srun -n1 --export=NONE /usr/bin/env | grep '^SLURM_CKPT_' | sort >none
SRUN_CKPT_KEEP=0 srun -n1 true 2>bad
echo "status $?" >>bad
echo end
END
job=$(submit_kept job.sh)
wait_end "$job" 120
tap_is "$(job_field "$job" JobState)" COMPLETED "the job completes"
value() { sed -n "s/^$2=//p" "$CASE/$1"; }	# FILE NAME
tap_is "$(value batch SLURM_CKPT_JOB)" "mini/$job/0" "batch: the seal"
tap_is "$(value batch SLURM_CKPT_DIR)" "$(run_dir "$job")" "batch: the run directory"
tap_is "$(value batch SLURM_CKPT_NAME)" "mini-$job" "batch: the run's name"
tap_is "$(value batch SLURM_KILL_BAD_EXIT)" 1 "batch: one dead rank ends the step"
tap_like "$(value batch SLURM_CKPT_RUN_ID)" '^[0-9a-f]{32}$' "batch: the run's id"
tap_like "$(value batch SLURM_CKPT_END_TIME)" '^[0-9]{10}$' "batch: the time limit"
tap_ok "(( $(value batch SLURM_CKPT_END_TIME) - $(date +%s) <= 300 ))" "... is this job's"
tap_like "$(value batch SLURM_CKPT_SUBMIT_TIME)" '^[0-9]{10}$' "batch: the submit time"
tap_is "$(value batch SLURM_CKPT_RESUME)$(value batch SLURM_CKPT_RESUME_STEP)" "" "batch: nothing to resume"
tap_is "$(grep -vE 'KILL_BAD|JOB_ID' "$CASE/batch")" "$(grep -vE 'KILL_BAD|GENERATION' "$CASE/step")" "a step has the same"
tap_is "$(value step SLURM_CKPT_GENERATION).$(value batch SLURM_CKPT_GENERATION)" 0. "... and how far srun has looked for an owner"
tap_is "$(value later SLURM_CKPT_RESUME)" "$(run_dir "$job")/step-0000000009.g1" "a later step: the newest checkpoint"
tap_is "$(value later SLURM_CKPT_RESUME_STEP)" 9 "... and its step"
tap_is "$(cat "$CASE/off")" "SLURM_CKPT_OFF=1" "srun --ckpt=off has nothing but the word that it is off"
tap_is "$(value other SLURM_CKPT_DIR)" "$CASE/runs/other" "srun --ckpt-name has a run of its own"
tap_is "$(value other SLURM_CKPT_KEEP)" 9 "... with its own settings"
tap_ok "[ -s '$CASE/runs/other/run.json' ]" "... and a run.json"
tap_is "$(value none SLURM_CKPT_KEEP)" 8 "SRUN_CKPT_KEEP, and srun --export=NONE"
tap_like "$(cat "$CASE/bad")" 'ckpt: SRUN_CKPT_KEEP: 0: not between.*status 1' "... and a bad one is refused"

job=$(submit_kept job.sh -t INFINITE)
wait_end "$job" 120
tap_is "$(value batch SLURM_CKPT_END_TIME)" "" "no end time without a limit"

job=$(as_user sbatch --parsable --array=3-4 -t 1 -J ckpt-env -o out-%A_%a --ckpt-dir=runs \
	--wrap 'echo name=$SLURM_CKPT_NAME' 2>>"$CASE/notices")
echo "$job" >>"$JOBS_FILE"
wait_file "name=mini-${job}_3" "out-${job}_3" 60
tap_ok $? "an array's element: <cluster>-<A>_<T>"
wait_file "name=mini-${job}_4" "out-${job}_4" 60
tap_ok $? "... and the other one"

new_case untouched
# What differs from job to job anyway is left out; SLURM_CONF is how the client is told apart.
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-env -o /dev/null -t 1 -w n2
cat_env() { env | grep -vE '^(SLURM_JOB_?ID|SLURM_TASK_PID|SLURM_JOB_(START|END)_TIME|SLURM_CONF|SLURM_SRUN.*|PMI.*|_)=' | sort; }
cat_env >"batch-$CASE_NAME"
srun -n1 env | grep -E '^SLURM.*(CKPT|KILL_BAD)|_OPTION_ckpt' >"step-$CASE_NAME"
exit 3
END
# A client without the plugin: its own slurm.conf, with an empty plugstack.conf.
mkdir "$CASE/client"
sed "s,^PlugStackConfig=.*,PlugStackConfig=$CASE/client/plugstack.conf," "$SLURM_CONF" >"$CASE/client/slurm.conf"
: >"$CASE/client/plugstack.conf"
declare -A jobs
jobs[bare]=$(as_user env CASE_NAME=bare SLURM_CONF="$CASE/client/slurm.conf" sbatch --parsable job.sh)
jobs[none]=$(as_user env CASE_NAME=none sbatch --parsable job.sh 2>"$CASE/notices")
jobs[off]=$(as_user env CASE_NAME=off sbatch --parsable --ckpt=off job.sh 2>>"$CASE/notices")
jobs[default]=$(as_user env CASE_NAME=default SBATCH_CKPT_KEEP=5 sbatch --parsable job.sh 2>>"$CASE/notices")
for name in "${!jobs[@]}"; do
	echo "${jobs[$name]}" >>"$JOBS_FILE"
	wait_end "${jobs[$name]}" 120
	tap_is "$(job_field "${jobs[$name]}" ExitCode)" 3:0 "$name: its own exit code"
done
for name in none off default; do
	tap_is "$(diff <(sed '/^CASE_NAME/d' "$CASE/batch-bare") <(grep -vE "^(CASE_NAME|SBATCH_)" "$CASE/batch-$name"))" "" \
		"$name: the batch script's environment is that of a client without the plugin"
	tap_is "$(cat "$CASE/step-$name")" "$(cat "$CASE/step-bare")" "$name: a step has nothing of ours"
done
tap_like "$(cat "$CASE/batch-none")" 'SLURM_CLUSTER_NAME=mini' "(there is something to compare)"
tap_is "$(cat "$CASE/notices")" "" "no notice"
tap_ok "[ ! -e '$CASE/ckpt' ]" "no directory"
no_drained
done_testing
