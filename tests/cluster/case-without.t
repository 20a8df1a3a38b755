#!/bin/bash
# A job without --ckpt, or with --ckpt=off, does not notice the plugin: the same environment and exit
# codes, no directory. A program that calls the library runs untouched in it.
. "$(dirname "$0")/train.sh"

new_run without

# A client that does not load the plugin, to compare with.
sed 's|^PlugStackConfig=.*|PlugStackConfig=/dev/null|' "$SLURM_CONF" >"$CASE/slurm.conf"

# shellcheck disable=SC2016
write_job env.sh --no-ckpt -n2 --no-requeue --output=/dev/null -- 'env >$NAME.batch' \
	'srun sh -c "env >$NAME.task\$SLURM_PROCID"'

# seen_by NAME [VARIABLE=VALUE] [SBATCH-OPTION...]: the environments in such a job, without what
# differs from job to job.
seen_by() {
	local name=$1 job variable=SLURM_CONF=$SLURM_CONF
	shift
	[[ ${1-} != [A-Z]* ]] || { variable=$1; shift; }
	job=$(as_user env "$variable" NAME="$name" sbatch --parsable "$@" env.sh \
		2>"$CASE/submit.err") || return 1
	echo "$job" >>"$JOBS_FILE"
	wait_state "$job" COMPLETED 60 >&2
	sort "$CASE/$name".{batch,task0,task1} |
		sed -E "s/\b$job\b/JOB/g; s/\bn[0-9]+\b/NODE/g; s/\b$name\b/NAME/g" |
		sed -E 's/^(SLURM_CONF|TMPDIR|SLURM_JOB_(START|END)_TIME|[A-Z_]*_(PORT|IPADDR|PID|HOST|CPUS|NODEID))=.*/\1/'
}

bare=$(seen_by bare SLURM_CONF="$CASE/slurm.conf")
tap_is "$(grep -c '^SLURM_JOB_ID=JOB' <<<"$bare")" 3 "the environments of a script and two tasks are seen"
tap_is "$(diff <(echo "$bare") <(seen_by plain))" '' "they are the same with the plugin"
tap_is "$(cat "$CASE/submit.err")" '' "and sbatch says nothing"
tap_is "$(diff <(echo "$bare") <(seen_by off --ckpt=off))" '' "--ckpt=off: the same"
tap_is "$(diff <(echo "$bare") <(seen_by offopts --ckpt=off --ckpt-every=5m --ckpt-keep=7))" '' \
	"--ckpt=off with other options: the same"
on=$(diff <(echo "$bare") <(seen_by on --ckpt))
tap_like "$on" 'SLURM_CKPT_DIR=' "(with --ckpt they are not)"
rm -rf "$CASE/ckpt"

# ends_as NAME STATE-AND-CODE OPTION -- LINE...
ends_as() {
	local name=$1 wanted=$2 job
	shift 3
	write_job "$name.sh" --no-ckpt -n2 -- "$@"
	for option in '' --ckpt=off; do
		job=$(submit "$name.sh" $option)
		wait_end "$job" 120
		tap_is "$(outcome "$job")" "$wanted 0" \
			"$name ${option:-no option}: $wanted, not requeued"
	done
}

ends_as ok 'COMPLETED 0:0' -- 'srun true'
ends_as code 'FAILED 7:0' -- 'exit 7'
ends_as requeue-code 'FAILED 75:0' -- 'srun sh -c "exit 75"'
ends_as signal 'FAILED 137:0' -- 'srun sh -c "kill -KILL \$\$"'
# Without the plugin's SLURM_KILL_BAD_EXIT the other task lives on.
ends_as one-fails 'FAILED 3:0' -- \
	'srun sh -c "[ \$SLURM_PROCID = 0 ] && exit 3
		until grep -q \"exit code 3\" out; do sleep 0.1; done; echo lived >>others"'
tap_is "$(sort -u "$CASE/others")" lived "one-fails: the other task was not killed"

# A program with the library.
STEPS=40
: >"$CASE/out"
write_job api.sh --no-ckpt -n2 -- "$(train)"
job=$(submit api.sh)
run_is_exact "$job" 2 0
tap_is "$(grep ckpt: "$CASE/out")" '' "the library says nothing"
tap_is "$(compgen -G "$CASE/ckpt*")" '' "no directory was made"
done_testing
