#!/bin/bash
# Nodes lose power: the one with the batch script, and another one. The jobs resume bit for bit, with
# nothing but the parallel file system left, and lose at most one interval.
. "$(dirname "$0")/train.sh"

# Steps of 100 ms and more are agreed on in the same call, so the interval is kept to the step.
STEP_MS=110

# Storage that dies with a node: its /tmp and /dev/shm, as this machine sees them.
node_root() { # NODE
	local pid
	pid=$("$MINICLUSTER" status | sed -n "s/^$1 up(pid \([0-9]*\)).*/\1/p")
	echo "/proc/$(pgrep -P "$pid" | head -n 1)/root"
}

# in_case NAME COMMAND...: with that case's directory.
in_case() {
	local CASE=${CASE%/*}/$1
	shift
	"$@"
}

declare -A job after
start_on() { # NAME NODES LINE-BEHIND...
	local name=$1 nodes=$2
	shift 2
	new_run "$name"
	write_job job.sh -N2 -n4 --exclusive --nodelist="$nodes" -- "$(train)" "$@"
	job[$name]=$(submit job.sh)
}

# dies NAME NODE: in the middle of the training.
dies() {
	in_case "$1" wait_file '^step 30 ' out 60 && minicluster kill "$2" >/dev/null
	tap_ok $? "$1: it trains, and $2 dies"
}

requeued() {
	wait_field "${job[$1]}" Restarts 1 90
	tap_ok $? "$1: the job is requeued"
}

start_on batch-node n1,n2
start_on other-node n3,n4 "${BEHIND[@]}"
after[other-node]=$(submit_after "${job[other-node]}")
for node in n1 n4; do
	touch "$(node_root $node)"/{tmp,dev/shm}/here
	tap_ok $? "$node has a /tmp and a /dev/shm of its own"
done
dies batch-node n1
dies other-node n4
tap_is "$(job_field "${job[batch-node]}" BatchHost) $(job_field "${job[other-node]}" BatchHost)" 'n1 n3' \
	"n1 had a batch script, n4 had not"
requeued batch-node
requeued other-node
in_case other-node nothing_behind_ran "${after[other-node]}"
for node in n1 n4; do
	minicluster start $node >/dev/null
	tap_ok $? "$node boots"
	root=$(node_root $node)
	tap_is "$(compgen -G "$root/tmp/here"; compgen -G "$root/dev/shm/here")" '' \
		"$node has lost its /tmp and /dev/shm"
done
for name in batch-node other-node; do
	wait_restart "${job[$name]}" 1 60
	tap_ok $? "$name: the job starts again"
done
in_case batch-node run_is_exact "${job[batch-node]}" 4 $MOST_LOST
in_case other-node run_is_exact "${job[other-node]}" 4 $MOST_LOST
in_case other-node behind_ran_once "${job[other-node]}" "${after[other-node]}"
for name in batch-node other-node; do
	in_case "$name" wait_file '^ckpt: resumed at step [1-9]' out 1
	tap_ok $? "$name: it says where it resumed"
done

if full; then
	# The other way round: lines behind srun, and the batch node; and without them.
	start_on batch-node-behind n1,n2 "${BEHIND[@]}"
	start_on other-node-plain n3,n4
	after[batch-node-behind]=$(in_case batch-node-behind submit_after "${job[batch-node-behind]}")
	dies batch-node-behind n1
	dies other-node-plain n4
	requeued batch-node-behind
	requeued other-node-plain
	in_case batch-node-behind nothing_behind_ran "${after[batch-node-behind]}"
	minicluster start n1 >/dev/null
	minicluster start n4 >/dev/null
	for name in batch-node-behind other-node-plain; do wait_restart "${job[$name]}" 1 60; done
	in_case batch-node-behind run_is_exact "${job[batch-node-behind]}" 4 $MOST_LOST
	in_case other-node-plain run_is_exact "${job[other-node-plain]}" 4 $MOST_LOST
	in_case batch-node-behind behind_ran_once "${job[batch-node-behind]}" "${after[batch-node-behind]}"
fi
done_testing
