#!/bin/bash
# A run that is in use is refused by name; --ckpt-takeover fences its owner; jobs that follow one
# another continue one run.
. "$(dirname "$0")/train.sh"

# own_files JOB.SH: this job's program writes files of its own.
own_files() { sed -i "s/losses losses/losses $1.losses/; s/final final/final $1.final/; s/=out/=$1.out/" "$CASE/$1.sh"; }

start() { # NAME SBATCH-OPTION...
	local name=$1
	shift
	write_job "$name.sh" -N1 -n2 --ckpt-name=run "$@" -- "$(train)"
	own_files "$name"
	submit "$name.sh"
}

new_run owner
first=$(start first)
wait_file '^step 40 ' first.out 60
second=$(start second)
wait_end "$second" 60
tap_is "$(job_field "$second" JobState) $(job_field "$second" ExitCode) $(job_field "$second" Restarts)" 'FAILED 78:0 0' \
	"a second job of a run in use fails with 78"
tap_like "$(cat "$CASE/second.out")" \
	"^ckpt: $CASE/ckpt/run: is in use by step 0 of job $first, which runs on n[0-9]+: .*--ckpt-takeover" \
	"it names the owner's step, job and node, and what can be done"
[ ! -e "$CASE/second.losses" ] && [ "$(cd "$CASE/ckpt/run" && echo .gen-*)" = .gen-1 ]
tap_ok $? "it has not trained, and claimed nothing"
tap_is "$(job_field "$first" JobState)" RUNNING "the first one trains on"

third=$(start third --ckpt-takeover)
wait_file '^ckpt: resumed at step [1-9]' third.out 60
tap_ok $? "with --ckpt-takeover a job takes over"
wait_end "$first" 60
tap_is "$(job_field "$first" JobState) $(job_field "$first" ExitCode) $(job_field "$first" Restarts)" 'FAILED 1:0 0' \
	"the old owner ends, not with 75, and is not requeued"
wait_file 'a newer generation than 1 has taken over this run' first.out 1
tap_ok $? "it says that it was superseded"
full_speed
wait_end "$third" 120
tap_is "$(job_field "$third" JobState) $(job_field "$third" ExitCode)" 'COMPLETED 0:0' "the new owner completes"
cmp "$CASE/third.final" "$(reference 2)/final"
tap_ok $? "in the bits of an undisturbed run"
tap_is "$(compgen -G "$CASE/ckpt/run/step-*.g1")" '' "nothing of the old owner was published after that"
fourth=$(start fourth)
full_speed
wait_end "$fourth" 60
tap_is "$(job_field "$fourth" ExitCode) $(cd "$CASE/ckpt/run" && compgen -G '.saving-*'; compgen -G '.gen-1/records-*')" '0:0 ' \
	"the next start sweeps what it had written"

# A chain: each element takes up what the one before has left.
new_run chain
write_job job.sh -N1 -n2 --array=1-3%1 --ckpt-name=big -- \
	'[ $SLURM_ARRAY_TASK_ID = 3 ] || (until grep -q "^step $((SLURM_ARRAY_TASK_ID * 30)) " out; do sleep 0.2; done; ckpt stop ckpt/big) &' \
	"$(train)"
chain=$(submit job.sh)
for element in 1 2 3; do
	[ $element != 3 ] || full_speed
	wait_last_end "${chain}_$element" 120
	state='FAILED 75:0 0'
	[ $element != 3 ] || state='COMPLETED 0:0 0'
	tap_is "$(job_field "${chain}_$element" JobState) $(job_field "${chain}_$element" ExitCode) $(job_field "${chain}_$element" Restarts)" \
		"$state" "chain: element $element: it ends as it should, and is not requeued"
done
tap_is "$(cd "$CASE/ckpt" && echo *) $(cd "$CASE/ckpt/big" && echo .gen-*)" 'big .gen-1 .gen-2 .gen-3' \
	"chain: it is one run, opened three times"
tap_is "$(grep -c '^ckpt: resumed at step' "$CASE/out")" 2 "chain: two of them resume"
same_bits 2 0
done_testing
