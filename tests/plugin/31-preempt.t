#!/bin/bash
# Preemption: a program that saves and exits 75 within the grace time is requeued by the plugin (22.05
# alone would call the job COMPLETED); one that does not is requeued by Slurm.
. "$(dirname "$0")/plugin.sh"

job_script() {
	write_stopper
	write job.sh <<-END
	#!/bin/bash
	#SBATCH -J ckpt-preempt -o out-%j -t 5 --exclusive --ckpt --ckpt-dir=runs $*
	srun $program
	echo "after \${SLURM_RESTART_COUNT:-0}: \$?"
	END
}

new_case grace
grace=$CASE
program=./stopper
job_script -p low -w n2 -n 2
first=$(submit_kept job.sh)
new_case deaf
deaf=$CASE
program="bash -c '[ \"\$SLURM_RESTART_COUNT\" ] && exit; echo stopper 0: start 0; trap \"\" TERM; while :; do sleep 1; done'"
job_script -p lowgrace0 -w n3
second=$(submit_kept job.sh)

CASE=$grace
wait_file 'stopper 1: start 0' "out-$first" 60
preempt n2 1 >/dev/null
wait_field "$first" Restarts 1 40
tap_ok $? "saved in the grace time: requeued"
tap_is "$(count_lines '^ckpt: requeueing: exit code 75$' "out-$first")" 1 "... by the plugin, and one line says so"
tap_is "$(count_lines 'saving$' "out-$first")" 2 "... both ranks have saved"
tap_is "$(count_lines '^after' "out-$first")" 0 "... no line after srun ran"
wait_restart "$first" 1 120
wait_end "$first" 120
tap_is "$(job_field "$first" JobState).$(job_field "$first" Restarts)" COMPLETED.1 "... and it completes in its second start"

CASE=$deaf
wait_file 'stopper 0: start 0' "out-$second" 60
preempt n3 1 >/dev/null
wait_field "$second" Restarts 1 60
tap_ok $? "deaf to SIGTERM: requeued by Slurm"
wait_restart "$second" 1 120
wait_end "$second" 120
tap_is "$(job_field "$second" JobState).$(job_field "$second" Restarts)" COMPLETED.1 "... and once only"
no_drained
done_testing
