#!/bin/bash
# slurmctld is away when a program stops with work left: srun waits for it, and the job is requeued.
. "$(dirname "$0")/../plugin/plugin.sh"

start_again() { minicluster controller start >/dev/null; }
trap 'start_again; end_jobs' EXIT

new_case away
# srun's own patience, else MessageTimeout's 10 s count several times.
sed '$aMessageTimeout=2' "$SLURM_CONF" >"$CASE/impatient.conf"
write program <<'END'
#!/bin/bash
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
echo "running"
until [ -e go ]; do sleep 0.1; done
[ "$1" != crash ] || exit 3
exit 75
END
# script NAME ARGUMENT
script() {
	write "$1.sh" <<-END
	#!/bin/bash
	#SBATCH -J ckpt-away -o out-%j -t 5 --ckpt --ckpt-dir=runs
	SLURM_CONF=$CASE/impatient.conf srun ./program $2
	echo "after \${SLURM_RESTART_COUNT:-0}: \$?"
	END
}
script job stop
script crash crash
job=$(submit_kept job.sh)
crash=$(submit_kept crash.sh)
wait_file '^running' "out-$job" 60
wait_file '^running' "out-$crash" 60

minicluster controller stop >/dev/null
tap_ok $? "slurmctld is stopped"
touch "$CASE/go"
for id in "$job" "$crash"; do
	wait_file '^ckpt: slurmctld does not answer; waiting for it' "out-$id" 120
	tap_ok $? "srun says that it waits"
	tap_is "$(count_lines '^after' "out-$id")" 0 "... and the script does not go on"
done
start_again
tap_ok $? "slurmctld is back"
wait_field "$job" Restarts 1 60
tap_ok $? "the job is requeued"
wait_end "$crash" 60
tap_is "$(outcome "$crash")" "COMPLETED 0:0 0" "a program that crashed meanwhile is not"
tap_is "$(count_lines '^after 0: 3$' "out-$crash")" 1 "... its script goes on with the exit code"
tap_is "$(count_lines 'not requeued: exit code 3' "out-$crash")" 1 "... one line says so"
tap_is "$(count_lines 'slurmctld does not answer' "out-$job")" 1 "one line said that it waited"
tap_is "$(count_lines '^after' "out-$job")" 0 "no line after srun ran"
for node in n1 n2 n3 n4; do wait_node $node 'idle|mixed|allocated|completing' 30; done
no_drained
done_testing
