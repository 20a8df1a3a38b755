#!/bin/bash
# scancel is final, whatever the job is doing at that moment.
. "$(dirname "$0")/train.sh"

STEPS=2000

# Each file of a save takes seconds, but less than KillWait.
SLOW='export SLURM_CKPT_IO_FAULT=pwrite:*.safetensors:delay=3000'

saving() { compgen -G "$CASE/ckpt/*/.saving-*" >/dev/null; }
processes_gone() { ! stepd_of "$1"; }

cancel_is_final() {
	local job=$1 restarts=$2
	as_user scancel "$job"
	tap_ok $? "${CASE##*/}: scancel"
	poll 30 processes_gone "$job"
	wait_state "$job" CANCELLED 30
	tap_is "$(job_field "$job" JobState) $(job_field "$job" Restarts)" "CANCELLED $restarts" \
		"${CASE##*/}: the job stays cancelled" || tap_diag "$(tail -n 8 "$CASE/out")"
	tap_is "$(grep -c '^ckpt: requeueing' "$CASE/out")" "$restarts" "${CASE##*/}: nothing requeues it"
}

new_run training
write_job job.sh -N1 -n2 -- "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
cancel_is_final "$job" 0
tap_is "$(step_number "$(run_steps | tail -n 1)")" "$(tail -n 1 "$CASE/losses" | cut -d' ' -f1)" \
	"training: its last step was saved all the same"

new_run periodic-save
write_job job.sh -N1 -n2 -- "$SLOW" "$(train)"
job=$(submit job.sh)
poll 40 saving
tap_ok $? "periodic-save: a save is under way"
cancel_is_final "$job" 0

new_run last-save
EVERY=1000 write_job job.sh -N1 -n2 --exclusive -- "$SLOW" "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
preempt "$(job_field "$job" NodeList)" >/dev/null
poll 40 saving
tap_ok $? "last-save: the save after the preemption is under way"
cancel_is_final "$job" 0

new_run waiting
write_job job.sh -N1 -n2 --exclusive -- "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
preempt "$(job_field "$job" NodeList)" >/dev/null
wait_field "$job" Restarts 1 40
wait_state "$job" PENDING 20
tap_ok $? "waiting: the job is requeued and waits"
cancel_is_final "$job" 1
if full; then
	# Between the end of the last save and the requeue: Slurm may have accepted that already.
	for try in 1 2 3 4; do
		new_run stopping-$try
		write_job job.sh -N1 -n2 -- "$(train)"
		job=$(submit job.sh)
		wait_file '^step 20 ' out 60
		as_user scancel --signal=USR1 "$job"
		wait_file '^ckpt: stopping at step' out 30
		as_user scancel "$job"
		poll 30 processes_gone "$job"
		wait_state "$job" CANCELLED 30
		tap_ok $? "stopping-$try: the job stays cancelled"
		tap_is "$(grep -c '^ckpt: \(starting\|resumed\)' "$CASE/out")" 1 \
			"stopping-$try: it was not started again"
	done
fi
done_testing
