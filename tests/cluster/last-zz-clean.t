#!/bin/bash
# What the tests have left behind: the last one to run.
. "$(dirname "$0")/cluster.sh"

SHARED=$MINICLUSTER_DIR/shared/ckptuser

test_jobs() { slurm squeue -h -o '%A %j %T %Z' | grep -E " $SHARED/(case|last)-"; }
no_test_jobs() { ! test_jobs >/dev/null; }

# Processes of test jobs: the user's, and slurmstepds, whose jobs are no longer known to run.
test_processes() {
	local running pid
	running=$(slurm squeue -h -t R,CG,S -o %A | paste -sd'|')
	for pid in $(pgrep -u ckptuser); do
		tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep '^SLURM_JOB_ID=' |
			grep -qvE "=(${running:-none})\$" &&
			ps -o pid=,stat=,args= -p "$pid"
	done
	ps -eo pid=,stat=,args= | grep -E '^ *[0-9]+ [^Z][^ ]* *slurmstepd: \[' |
		grep -vE "\[(${running:-none})\."
}
no_test_processes() { [ -z "$(test_processes)" ]; }

poll 30 no_test_jobs
tap_is "$(test_jobs)" '' "no job of the tests is left"
poll 30 no_test_processes
tap_is "$(test_processes)" '' "nor a process of theirs"
tap_is "$(drained_nodes)" '' "no node is drained"
for node in $(slurm sinfo -h -N -o %N | sort -u); do
	wait_node "$node" 'idle|mixed|allocated|completing' 60
	tap_ok $? "$node is up"
done
done_testing
