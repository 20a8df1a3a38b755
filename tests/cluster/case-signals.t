#!/bin/bash
# Signals: TERM to one rank stops all at one step; children of ranks do not matter; USR1 saves and
# stops, USR2 saves and goes on.
. "$(dirname "$0")/train.sh"

EVERY=10000
GRACE=20	# of partition low, as minicluster has it

# all_stop_at_once BEGAN: since then they saved one step, stopped, and were requeued in time.
all_stop_at_once() {
	local took step
	wait_field "$job" Restarts 1 60
	took=$((SECONDS - $1))
	[ $took -lt $GRACE ]
	tap_ok $? "${CASE##*/}: the job stops and is requeued within the grace time ($took s)"
	step=$(step_number "$(run_steps | tail -n 1)")
	tap_is "$(run_steps | wc -l) $(cd "$(run_dir)" && echo .gen-*) $(tail -n 1 "$CASE/losses" | cut -d' ' -f1)" \
		"1 .gen-1 $step" "${CASE##*/}: one save, of the step at which all stopped"
	tap_is "$(grep '^ckpt: stopping' "$CASE/out")" \
		"ckpt: stopping at step $step (signal 15): it resumes from step $step" "${CASE##*/}: it says so once"
}

# Rank 2 is told, on the node without the batch script; nobody else ever is.
new_run one-rank
write_job job.sh -N2 -n4 -- "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
kill -TERM "$(task_pid "$job" 2)"
tap_ok $? "one-rank: rank 2 gets TERM"
all_stop_at_once $SECONDS
wait_restart "$job" 1 60
run_is_exact "$job" 4 0

# Each rank has eight children in its process group, which ignore what the rank saves for.
new_run children
cat >"$CASE/with-children" <<'END'
#!/bin/bash
for child in 1 2 3 4 5 6 7 8; do
	(trap '' TERM USR1 USR2 && exec sleep 600) &
done
exec "$@"
END
chmod +x "$CASE/with-children"
children() { pgrep -P "$(task_pid "$job" 0)" -x sleep | wc -l; }
line=$(train)
write_job job.sh -N1 -n4 --exclusive -- "${line/.\/train/./with-children ./train}"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
tap_is "$(children)" 8 "children: each rank has eight"
began=$SECONDS
preempt "$(job_field "$job" NodeList)" >/dev/null
all_stop_at_once $began
wait_restart "$job" 1 60
run_is_exact "$job" 4 0

new_run usr
write_job job.sh -N1 -n2 -- "$(train)"
job=$(submit job.sh)
wait_file '^step 20 ' out 60
as_user scancel --signal=USR2 "$job.0"
wait_file '^ckpt: saved step' out 30
tap_ok $? "usr: USR2 to step 0: it saves"
saved=$(step_number "$(run_steps)")
wait_file "^step $((saved / 10 * 10 + 20)) " out 30
tap_is "$(job_field "$job" JobState) $(grep -c '^ckpt: stopping' "$CASE/out")" 'RUNNING 0' "usr: and goes on"
as_user scancel --signal=USR1 "$job.0"
wait_restart "$job" 1 60
tap_ok $? "usr: USR1: the job is requeued"
tap_is "$(run_steps | wc -l) $(grep -cE '^ckpt: stopping at step [0-9]+ \(signal 10\): it resumes' "$CASE/out")" '2 1' \
	"usr: it has saved and stopped"
run_is_exact "$job" 2 0
done_testing
