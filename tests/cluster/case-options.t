#!/bin/bash
# Bad options: one clear line, and nothing is submitted; or one failed task that says why.
. "$(dirname "$0")/train.sh"

# jobs_named NAME: how many of them Slurm knows.
jobs_named() { slurm squeue -h -t all -o %j | grep -cx "$1"; }

# refused OPTION REGEX: sbatch says so in one line, and submits nothing.
refused() {
	local name=refused-$$-$RANDOM out status
	out=$(as_user sbatch -J "$name" "$1" --wrap true 2>&1)
	status=$?
	tap_is "$((status != 0)) $(wc -l <<<"$out") $(jobs_named "$name")" '1 1 0' \
		"sbatch $1: one line, no job" || tap_diag "$out"
	tap_like "$out" "^sbatch: error: ckpt: $2" \
		"sbatch $1: it names the option, the value and what is expected"
}

new_case sbatch
refused --ckpt-keep=0 '--ckpt-keep: 0: .*1'
refused --ckpt-every=banana '--ckpt-every: banana: '
refused --ckpt-every=500 '--ckpt-every: 500: .*500steps'
refused --ckpt-name=../x '--ckpt-name: \.\./x: '
if full; then
	refused --ckpt=maybe '--ckpt: maybe: .*off'
	refused --ckpt-dir= '--ckpt-dir: '
	refused --ckpt-keep=-1 '--ckpt-keep: -1: '
	refused --ckpt-keep=3x '--ckpt-keep: 3x: '
	refused --ckpt-requeue=often '--ckpt-requeue: often: '
	refused --ckpt-margin=1parsec '--ckpt-margin: 1parsec: '
	refused --ckpt-name=.hidden '--ckpt-name: \.hidden: '
fi

# In a script the line is the same.
new_run script
write_job job.sh -n1 --ckpt-keep=0 -- "$(train)"
out=$(as_user sbatch job.sh 2>&1)
tap_is "$out" "$(as_user sbatch --ckpt-keep=0 --wrap true 2>&1)" \
	"#SBATCH --ckpt-keep=0 is refused like the option"

# fails_with_78 JOB REGEX: its only word is this line, and its node is not drained.
fails_with_78() {
	local node
	wait_end "$1" 120
	tap_is "$(outcome "$1")" 'FAILED 78:0 0' \
		"${CASE##*/}: the job fails with 78"
	tap_is "$(grep -c . "$CASE/out")" 1 "${CASE##*/}: with one line of output" ||
		tap_diag "$(cat "$CASE/out")"
	tap_like "$(cat "$CASE/out")" "$2" "${CASE##*/}: which says why"
	node=$(job_field "$1" NodeList)
	tap_is "$(drained_nodes | grep "^$node ")" '' "${CASE##*/}: node $node is not drained"
}

# A directory that cannot be made.
new_run directory
write_job job.sh -n2 --ckpt-dir=/proc/nope -- "$(train)"
fails_with_78 "$(submit job.sh)" '^ckpt: .*/proc/nope'

# A value that has bypassed sbatch's check.
new_run forged
write_job job.sh -n2 -- "$(train)"
job=$(as_user env _SLURM_SPANK_OPTION_ckpt_ckpt_keep=0 sbatch --parsable job.sh 2>/dev/null)
echo "$job" >>"$JOBS_FILE"
fails_with_78 "$job" '^ckpt: --ckpt-keep: 0: '

# The same in a step only: its tasks do not run, the script goes on.
new_run step
write_job job.sh --no-ckpt -n2 -- 'srun --ckpt-dir=/proc/nope touch RAN' 'echo "srun: $?"' \
	'srun --ckpt-keep=0 touch RAN' 'echo "srun: $?"'
job=$(submit job.sh)
wait_end "$job" 120
tap_like "$(grep -v 'srun: error: n' "$CASE/out" | paste -sd'|')" \
	'^ckpt: .*/proc/nope.*\|srun: 78\|srun: error: ckpt: --ckpt-keep: 0: .*\|srun: 1$' \
	"step: one line each, exit codes 78 and 1" || tap_diag "$(cat "$CASE/out")"
[ ! -e "$CASE/RAN" ]
tap_ok $? "step: no task ran"
done_testing
