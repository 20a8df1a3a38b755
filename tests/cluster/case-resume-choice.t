#!/bin/bash
# --ckpt-resume=fresh and --ckpt-from hold until the job's own first commit; a run that is gone is
# refused, not begun anew.
. "$(dirname "$0")/train.sh"

run_dir() { echo "$CASE/ckpt/${run:-run}"; }

# again NAME SBATCH-OPTION... -- LINE...: another job in this directory, whose own files are new.
again() {
	rm -f "$CASE"/{losses,final}
	: >"$CASE/out"
	write_job "$@"
	job=$(submit "$1")
}

# disturb TIME: preempt the job in full, requeue it in fast.
disturb() {
	if full; then
		preempt "$(job_field "$job" NodeList)" >/dev/null
	else
		as_user scontrol requeue "$job"
	fi
	wait_restart "$job" "$1" 90
	tap_ok $? "${CASE##*/}: ${FUNCNAME[1]}: start $1 after the first"
}

said() { # REGEX NAME
	wait_file "^ckpt: $1" out 1
	tap_ok $? "${CASE##*/}: $2"
}

# The first start cannot save, so the second one is fresh too; it saves, and the third one goes on.
fresh_until_commit() {
	local old own
	old=$(run_steps)
	again fresh.sh -N1 -n4 --exclusive --ckpt-name=run --ckpt-resume=fresh -- \
		'[ -n "$SLURM_RESTART_COUNT" ] || export SLURM_CKPT_IO_FAULT="pwrite:*.safetensors:errno=ENOSPC"' "$(train)"
	wait_file '^step 30 ' out 60
	said "fresh, as asked for: $(wc -l <<<"$old") older checkpoints of this run are not used" "fresh: it says so"
	disturb 1
	tap_is "$(run_steps | grep -vxF "$old") $(run_steps | tail -n 1)" " $newest" \
		"fresh: the first start has saved nothing, the newest older checkpoint stays"
	poll 60 eval '[ "$(grep -c "^step 30 " "$CASE/out")" = 2 ]'
	tap_is "$(grep -c '^ckpt: fresh, as asked for' "$CASE/out")" 2 "fresh: the second start is fresh too"
	disturb 2
	own=$(run_steps | grep -vxF "$old" | tail -n 1)
	run_is_exact "$job" 4 $(($(grep -n '^1 ' "$CASE/losses" | tail -n 1 | cut -d: -f1) - 1))
	tap_is "$(grep -c '^ckpt: fresh, as asked for' "$CASE/out")" 2 "fresh: the third start is not"
	said "resumed at step $(step_number "$own"), " "fresh: it goes on from the second's checkpoint"
}

listing() { (cd "$1" && find . -printf '%p %y %s %T@ %i\n' | sort); }

# The other run is used until there is a checkpoint of its own, and only read.
from_another_run() {
	local before
	before=$(listing "$CASE/ckpt/run")
	run=branch
	again from.sh -N1 -n4 --exclusive --ckpt-name=branch --ckpt-from="$CASE/ckpt/run" -- "$(train)"
	wait_file "^step $(($(step_number "$newest") / 10 * 10 + 20)) " out 60
	said "began from step $(step_number "$newest") of $CASE/ckpt/run, into $CASE/ckpt/branch" "from: it says where it begins"
	disturb 1
	full_speed
	wait_last_end "$job" 120
	tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode)" 'COMPLETED 0:0' "from: the job completes"
	cmp "$CASE/final" "$(reference 4)/final"
	tap_ok $? "from: in the bits of an undisturbed run"
	tap_is "$(steps_redone) $(grep -c '^ckpt: began from' "$CASE/out") $(grep -c '^ckpt: resumed at' "$CASE/out")" '0 1 1' \
		"from: the other run was used once, then its own checkpoint"
	tap_is "$(listing "$CASE/ckpt/run")" "$before" "from: the other run is untouched"
	run=run
}

# The run's directory is not there when the job starts again.
run_is_gone() {
	mv "$CASE/ckpt/run" "$CASE/ckpt/elsewhere"
	as_user scontrol requeue "$job"
	wait_restart "$job" 1 60
	wait_end "$job" 60
	tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode)" 'FAILED 78:0' "gone: the job fails with 78"
	tap_is "$(cat "$CASE/out")" "ckpt: this job has run before, $CASE/ckpt/run is missing: is the file system mounted? To start over, create the empty directory" \
		"gone: its only line says what is wrong and what can be done"
	[ ! -e "$CASE/ckpt/run" ]
	tap_ok $? "gone: no run is made in its place"
	mv "$CASE/ckpt/elsewhere" "$CASE/ckpt/run"
}

new_run choice
stopped_job
run_is_gone
from_another_run
fresh_until_commit
done_testing
