# shellcheck shell=bash disable=SC2034,SC2120
#
# Training jobs for the cluster tests, and the proof that one was resumed bit for bit. Use:
#
#	. "$(dirname "$0")/train.sh"		# reads cluster.sh too
#	new_run preempt				# $CASE with ./train and inputs/text
#	write_job job.sh -N2 -n4 --exclusive -- "$(train)" 'touch AFTER'
#	job=$(submit job.sh)
#	wait_file '^step 20 ' out 60
#	...					# disturb it, wait_restart
#	run_is_exact "$job" 4 0			# 4 ranks, no step redone
#
# A job that is preempted must have its nodes alone (--exclusive): `preempt` takes whole nodes, and
# other tests run beside this one.

. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

TRAIN=${CK_TRAIN:-$MINICLUSTER_DIR/opt/bin/train}
# A job is slow until its test has done all that it does to it, at any speed of the machine: from step
# 20, when most tests strike, it would run on for half a minute at least. full_speed then ends it soon.
STEPS=400 STEP_MS=80 EVERY=20
BATCH=32	# small: the ranks of many jobs share the machine
# What a death may cost: an interval, and the steps trained while the save at its end was written.
MOST_LOST=$((EVERY + 10))
TEXT=/usr/share/common-licenses/GPL-3
SUPPORT=$CLUSTER_DIR/../support

[ -x "$TRAIN" ] || tap_skip_all "$TRAIN is not there: tests/cluster/install"

# full: `make check-full`, not `make check`
full() { [ "${CK_FULL:-0}" = 1 ]; }

# new_run NAME: new_case with what a training job needs.
new_run() {
	new_case "$1"
	ln -s "$TRAIN" "$CASE/train"
	mkdir "$CASE/inputs"
	cp "$TEXT" "$CASE/inputs/text"
	chown -R ckptuser: "$CASE/inputs"
}

# train [OPTION...]: the line of a script that trains, at STEP_MS.
train() {
	echo "$STEP_MS" >"$CASE/pace"
	echo "srun --mpi=pmix ./train --steps $STEPS --global-batch $BATCH --pace $CASE/pace --text inputs/text" \
		"--losses losses --final final $*"
}

# full_speed: from now on, for all jobs of this case.
full_speed() { echo 0 >"$CASE/pace"; }

# write_job FILE SBATCH-OPTION... -- LINE...: a script with --ckpt, if no --ckpt option is given.
write_job() {
	local file=$CASE/$1 options='' ckpt='--ckpt'
	shift
	while [ "$1" != -- ]; do
		[[ $1 != --ckpt && $1 != --ckpt=* && $1 != --no-ckpt ]] || ckpt=''
		[ "$1" = --no-ckpt ] || options+="#SBATCH $1"$'\n'
		shift
	done
	shift
	{
		echo '#!/bin/bash'
		printf '#SBATCH --output=out\n#SBATCH --open-mode=append\n%s' "$options"
		[ -z "$ckpt" ] || printf '#SBATCH --ckpt\n#SBATCH --ckpt-every=%dsteps\n' "$EVERY"
		printf '%s\n' "$@"
	} >"$file"
}

# task_pid JOB RANK: of the program, as this machine sees it.
task_pid() {
	local pid
	for pid in $(pgrep -u ckptuser -x train); do
		[ "$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" |
			grep -cxE "SLURM_(JOB_ID=$1|PROCID=$2)")" = 2 ] && echo "$pid" && return
	done
	return 1
}

# ---- an undisturbed run

# reference RANKS [TRAIN-OPTION...]: prints a directory with `losses` and `final` of the same training
# in one piece: without Slurm, without checkpoints. Made once for all tests.
reference() {
	local ranks=$1 key dir
	shift
	key=$(sha256sum <<<"$(sha256sum "$TRAIN") $ranks $STEPS $BATCH $*" | cut -c1-16)
	dir=$MINICLUSTER_DIR/shared/ckptuser/reference/$key
	mkdir -p "${dir%/*}"
	(
		flock 9
		[ -e "$dir/final" ] || make_reference "$dir" "$ranks" "$@" || rm -rf "$dir"
	) 9>"${dir%/*}/lock"
	echo "$dir"
}

make_reference() {
	local dir=$1 ranks=$2
	shift 2
	mkdir -p "$dir" && chown ckptuser: "$dir" &&
	minicluster run env -C "$dir" mpirun -n "$ranks" --oversubscribe "$TRAIN" \
		--steps "$STEPS" --global-batch "$BATCH" --text "$TEXT" --losses losses --final final "$@" \
		>"$dir/out" 2>&1 9>&- && return
	tap_diag "the undisturbed run failed: $(tail -n 5 "$dir/out")" >&2
	return 1
}

# ---- what a run has done

# steps_redone: how many steps of this run were trained more than once.
steps_redone() { echo $(($(wc -l <"$CASE/losses") - $(sort -u "$CASE/losses" | wc -l))); }

# run_dir: of the only run of this case.
run_dir() { echo "$CASE"/ckpt/*; }

# run_steps: names of its committed steps, oldest first.
run_steps() { (cd "$(run_dir)" 2>/dev/null && compgen -G 'step-*.g*' | sort -t. -k2.2n -k1,1); }

newest_step() { echo "$(run_dir)/$(run_steps | tail -n 1)"; }

# step_number NAME: of a step's directory.
step_number() {
	local number=${1#step-}
	echo $((10#${number%.*}))
}

# same_bits RANKS MOST-REDONE [TRAIN-OPTION...]: this run and an undisturbed one ended in the same bits.
same_bits() {
	local ranks=$1 most=$2 reference redone
	shift 2
	reference=$(reference "$ranks" "$@")
	cmp "$CASE/final" "$reference/final"
	tap_ok $? "${CASE##*/}: parameters, moments and loss are those of an undisturbed run, bit for bit"
	sort -n -u "$CASE/losses" | cmp - "$reference/losses"
	tap_ok $? "${CASE##*/}: so is the loss of every step"
	redone=$(steps_redone)
	[ "$redone" -le "$most" ]
	tap_ok $? "${CASE##*/}: at most $most steps were done again ($redone)"
}

# run_is_exact JOB RANKS MOST-REDONE [TRAIN-OPTION...]: left alone it completes, with the right bits.
run_is_exact() {
	local job=$1
	shift
	full_speed
	wait_last_end "$job" 120
	tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode)" 'COMPLETED 0:0' \
		"${CASE##*/}: the job completes" || tap_diag "$(tail -n 12 "$CASE/out")"
	same_bits "$@"
}

# stopped_job: a run of four ranks in $CASE that was told to stop after a few checkpoints, with
# an empty `out`. Sets `job`, and `newest` and `second` (names of steps).
stopped_job() {
	write_job job.sh -N1 -n4 --ckpt-requeue=no --ckpt-name=run -- "$(train)"
	job=$(submit job.sh)
	wait_file '^step 40 ' out 60
	as_user scancel --signal=USR1 "$job"
	wait_end "$job" 30
	tap_is "$(outcome "$job")" 'FAILED 75:0 0' "${CASE##*/}: a run is stopped"
	newest=$(run_steps | tail -n 1) second=$(run_steps | tail -n 2 | head -n 1)
	: >"$CASE/out"
}

# ---- lines behind srun

# Shell lines that ruin a run which is not finished, and tell which start they ran in.
# shellcheck disable=SC2016
BEHIND=('echo "start ${SLURM_RESTART_COUNT:-0}" >>AFTER' 'rm -rf inputs')

# submit_after JOB: a job that may only start when JOB is done, lines behind srun included.
submit_after() {
	local after
	after=$(as_user sbatch --parsable --dependency=afterok:"$1" -o /dev/null --wrap 'test -e AFTER') ||
		{ echo no-job; return 1; }
	echo "$after" | tee -a "$JOBS_FILE"
}

# nothing_behind_ran AFTER-JOB: while the first job is between two starts.
nothing_behind_ran() {
	[ ! -e "$CASE/AFTER" ] && [ -e "$CASE/inputs/text" ]
	tap_ok $? "${CASE##*/}: no line behind srun has run in the interrupted start"
	tap_is "$(job_field "$1" JobState) $(job_field "$1" Reason)" 'PENDING Dependency' \
		"${CASE##*/}: an afterok job still waits"
}

# behind_ran_once JOB AFTER-JOB: after the end.
behind_ran_once() {
	tap_is "$(cat "$CASE/AFTER" 2>&1)" "start $(job_field "$1" Restarts)" \
		"${CASE##*/}: lines behind srun ran once, in the last start"
	[ ! -e "$CASE/inputs" ]
	tap_ok $? "${CASE##*/}: all of them"
	wait_end "$2" 60
	tap_is "$(job_field "$2" JobState)" COMPLETED "${CASE##*/}: then the afterok job ran"
}
