#!/bin/bash
# A batch script with traps, and srun in the foreground, when its job is requeued: a trap on SIGTERM runs at
# once, one on EXIT as the script dies; what only an end may do is done at the end.
. "$(dirname "$0")/plugin.sh"

declare -A jobs cases
# begin NAME SBATCH-ARGUMENTS; the lines above srun are on standard input
begin() {
	local name=$1
	shift
	new_case "$name"
	cases[$name]=$CASE
	write_stopper
	{
		printf '#!/bin/bash\n#SBATCH -J ckpt-trap -o out-%%j -t 5 --ckpt --ckpt-dir=runs %s\n' "$*"
		cat
		cat <<-'END'
		srun ./stopper && over=1
		echo "after ${SLURM_RESTART_COUNT:-0}: $?"
		END
	} | write job.sh
	jobs[$name]=$(submit_kept job.sh)
}
at() { CASE=${cases[$1]} job=${jobs[$1]} out=out-${jobs[$1]}; }
# stop_tasks: as `ckpt` programs do it by themselves, at a signal to the step.
stop_tasks() { wait_file 'stopper 0: start 0' "$out" 60 && slurm scancel --signal=TERM "$job.0" 2>/dev/null; }

begin term <<'END'
trap 'echo "term ${SLURM_RESTART_COUNT:-0}"; exit 9' TERM
END
# A script that goes on after its trap, and a program whose exit code says that all is well.
begin goes-on <<'END'
trap 'echo "term ${SLURM_RESTART_COUNT:-0}"' TERM
trap '[ -z "$over" ] || echo "over ${SLURM_RESTART_COUNT:-0}"' EXIT
END
write_pretend
write stopper <<'END'
#!/bin/bash
echo "stopper 0: start ${SLURM_RESTART_COUNT:-0}"
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
trap './pretend open; ./pretend save 7; ./pretend mark requeue 7 "signal 15"; exit 0' TERM
while :; do sleep 0.1; done
END
begin exit <<'END'
trap 'echo "exit ${SLURM_RESTART_COUNT:-0}, ${over:+over}"' EXIT
END
begin grace -p low -w n2 --exclusive <<'END'
trap 'echo "term ${SLURM_RESTART_COUNT:-0}"; exit 9' TERM
END

for name in term goes-on exit; do
	at $name
	stop_tasks
done
at grace
wait_file 'stopper 0: start 0' "$out" 120 && preempt n2 1 >/dev/null

at term
wait_file '^term 0' "$out" 60
tap_ok $? "a trap on SIGTERM runs"
tap_is "$(count_lines '^after 0' "$out")" 0 "... and the script ends there"
wait_field "$job" Restarts 1 10
tap_ok $? "... the job is requeued"

at exit
wait_file '^exit 0, $' "$out" 60
tap_ok $? "a trap on EXIT runs in a start that is interrupted, and can tell that it is not the end"
wait_restart "$job" 1 120

at goes-on
wait_file '^after 0: 75$' "$out" 60
tap_ok $? "a script that goes on after its trap: srun has failed, though the program exits 0"
tap_is "$(count_lines '^term 0' "$out").$(count_lines '^over 0' "$out")" 1.0 "... and it is not over"
wait_restart "$job" 1 120
wait_end "$job" 120
tap_is "$(job_field "$job" JobState).$(job_field "$job" Restarts)" COMPLETED.1 "... it completes in its second start"
tap_is "$(count_lines '^over 1' "$out")" 1 "... and then it is over"

at exit
wait_end "$job" 120
tap_is "$(count_lines '^after' "$out").$(count_lines '^after 1: 0' "$out")" 1.1 "no line after srun ran before the last start"
tap_is "$(count_lines '^exit 1, over$' "$out")" 1 "... whose trap knows that it is the end"

at grace
wait_file '^term 0' "$out" 60
tap_ok $? "preempted within the grace time: the trap on SIGTERM runs"
wait_field "$job" Restarts 1 60
tap_ok $? "... and the job is requeued"
tap_is "$(count_lines '^after 0' "$out")" 0 "... its script has ended in the trap"
no_drained
done_testing
