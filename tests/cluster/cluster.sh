# shellcheck shell=bash
#
# Library of the cluster tests: TAP, and jobs on the cluster of contrib/minicluster. Use:
#
#	. "$(dirname "$0")/cluster.sh"		# skips the whole test if no cluster is up
#	new_case preempt			# own directory $CASE, the working directory of as_user
#	job=$(submit job.sh -w n3 --exclusive)
#	wait_state "$job" RUNNING 10; tap_ok $? "the job starts"
#	done_testing				# prints the plan; at exit all jobs of this test are cancelled
#
# Every wait has a deadline in seconds, polls, and on failure prints a "# ..." line and returns 1.
# Tests case-*.t may use the cluster at once, so nothing here looks at jobs that others submitted;
# one last-*.t at a time has it alone.

set -u

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MINICLUSTER=$CLUSTER_DIR/../../contrib/minicluster
TEST_NAME=$(basename "$0" .t)
CMD_SECONDS=${CMD_SECONDS:-120}		# longest time for one as_user command
POLL_SECONDS=0.2
REQUEUE_DELAY=16				# cred_expire of contrib/minicluster, and 1
FINAL='COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|PREEMPTED|OUT_OF_MEMORY'	# states of a job
CASE=''

# shellcheck source=../support/tap.sh
. "$CLUSTER_DIR/../support/tap.sh"

# ---- the cluster

minicluster() { timeout -k 5 "$CMD_SECONDS" "$MINICLUSTER" "$@"; }

# newer_than_slurm YEAR.MONTH: the cluster's Slurm is of a later release.
newer_than_slurm() {
	local release
	release=$(slurm slurmctld -V | grep -Eo '[0-9]+\.[0-9]+' | head -n 1)
	[ "$(printf '%s\n' "$release" "$1" | sort -V | tail -n 1)" != "$1" ]
}

# as_user COMMAND...: runs it as the test user in $CASE, for at most CMD_SECONDS.
as_user() { minicluster run ${CASE:+env -C "$CASE"} "$@"; }

slurm() { timeout -k 1 10 "$@"; }

# new_case NAME: an empty directory for this case, below the parallel file system.
new_case() {
	CASE=$MINICLUSTER_DIR/shared/ckptuser/$TEST_NAME/$1
	rm -rf "$CASE"
	mkdir -p "$CASE" && chown -R ckptuser: "${CASE%/*}"
}

# submit FILE [SBATCH-ARGUMENT...]: prints the job id. FILE is relative to $CASE; what sbatch says
# goes to submit.err there.
submit() {
	local file=$1 job
	shift
	job=$(as_user sbatch --parsable "$@" "$file" 2>"$CASE/submit.err") || {
		tap_diag "$(cat "$CASE/submit.err")" >&2
		echo no-job	# "" would be all jobs to scontrol
		return 1
	}
	echo "${job%%;*}" | tee -a "$JOBS_FILE"
}

# preempt NODES [SECONDS]: a high job that wants these nodes whole and holds them SECONDS (2); prints its id.
preempt() {
	local count job
	count=$(slurm scontrol show hostnames "$1" | wc -l)
	job=$(as_user sbatch --parsable -J preempt -o /dev/null -p high -w "$1" -N "$count" --exclusive -t 5 \
		--wrap "sleep ${2:-2}") || return 1
	echo "$job" | tee -a "$JOBS_FILE"
}

# job_field JOB FIELD: as `scontrol show job` has it (JobState, Restarts, Reason, ExitCode, NodeList, ...).
job_field() {
	local all
	all=" $(slurm scontrol -o show job "$1" 2>/dev/null)"
	[[ ${all%%$'\n'*} =~ \ $2=([^ ]*) ]] && echo "${BASH_REMATCH[1]}"
}

# outcome JOB: its state, exit code and number of restarts: "COMPLETED 0:0 1"
outcome() { echo "$(job_field "$1" JobState) $(job_field "$1" ExitCode) $(job_field "$1" Restarts)"; }

# poll SECONDS COMMAND...: until COMMAND succeeds.
poll() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep $POLL_SECONDS
	done
}

job_field_is() { [[ $(job_field "$1" "$2") =~ ^($3)$ ]]; }

# field_settled JOB FIELD REGEX: so it is, or the job is over and it will not be.
field_settled() { job_field_is "$1" "$2" "$3" || job_field_is "$1" JobState "$FINAL"; }

# wait_field JOB FIELD REGEX SECONDS
wait_field() {
	poll "$4" field_settled "$@"
	job_field_is "$1" "$2" "$3" && return
	tap_diag "job $1: after $4 s $2 is '$(job_field "$1" "$2")', not $3;" \
		"$(job_field "$1" JobState) $(job_field "$1" Reason)"
	return 1
}

# wait_state JOB "STATE|STATE" SECONDS
wait_state() { wait_field "$1" JobState "$2" "$3"; }

# wait_end JOB SECONDS: until it is in a final state (a requeued job is not).
wait_end() { wait_state "$1" "$FINAL" "$2"; }

# wait_restart JOB COUNT SECONDS: until it runs for the COUNT-th time after the first.
# hurry it there: a requeued job waits 16 s, which its owner may cut short.
wait_restart() {
	wait_field "$1" Restarts "$2" "$3" || return 1
	poll "$3" hurry "$1" && return
	tap_diag "job $1: restart $2 does not run after $3 s:" \
		"$(job_field "$1" JobState) $(job_field "$1" Reason)"
	return 1
}

# wait_last_end JOB SECONDS: wait_end, and hurry it through the restarts until there.
wait_last_end() {
	local end=$((SECONDS + $2))
	until job_field_is "$1" JobState "$FINAL"; do
		[ $SECONDS -lt $end ] || break
		hurry "$1"
		sleep $POLL_SECONDS
	done
	wait_end "$1" 0
}

stepd_of() { ps -eo args | grep -q "^slurmstepd: \[$(job_field "$1" JobId)\."; }

# may_hurry JOB: not while a slurmstepd of the last start is about, which holds PMIx's socket of the
# step; and not in the second of its end, in which slurmd takes a new credential for the revoked one.
may_hurry() {
	local eligible
	eligible=$(date -d "$(job_field "$1" EligibleTime)" +%s) || return 1
	[ "$(date +%s)" -ge $((eligible - REQUEUE_DELAY + 2)) ] && ! stepd_of "$1"
}

# hurry JOB: succeeds when it runs or is over.
hurry() {
	case $(job_field "$1" JobState) in
	RUNNING | COMPLETED | FAILED | TIMEOUT) return 0 ;;
	PENDING)
		job_field_is "$1" Reason BeginTime && may_hurry "$1" &&
			slurm scontrol update jobid="$1" StartTime=now 2>/dev/null
		;;
	esac
	return 1
}

# wait_file REGEX FILE SECONDS: until FILE (relative to $CASE) has such a line.
wait_file() {
	local file=$2
	[[ $file == /* ]] || file=$CASE/$file
	poll "$3" grep -qsE -- "$1" "$file" && return
	tap_diag "$file: no line like /$1/ after $3 s; its end:"
	tap_diag "$(tail -n 5 "$file" 2>&1)"
	return 1
}

node_state() { slurm sinfo -h -N -n "$1" -o %T | head -1; }
node_state_is() { [[ $(node_state "$1") =~ ^($2)$ ]]; }

# wait_node NODE "STATE|STATE" SECONDS: idle, mixed, allocated, completing, 'down[*]?', 'drain.*'
wait_node() {
	poll "$3" node_state_is "$1" "$2" && return
	tap_diag "node $1: after $3 s it is '$(node_state "$1")', not $2"
	return 1
}

# drained_nodes: prints "NODE STATE REASON" of every drained or draining node.
drained_nodes() { slurm sinfo -h -N -o '%N %T %E' | grep -E '^[^ ]+ drain' | sort -u; }

# no_leftovers: prints what this test's jobs left behind on the cluster; succeeds if that is nothing.
no_leftovers() {
	local jobs pid
	jobs=$(sort -u "$JOBS_FILE" | paste -sd'|')
	[ -z "$jobs" ] || ! {
		slurm squeue -h -o 'job %A %j %T %R' | grep -E "^job ($jobs) "
		for pid in $(ps -o pid= -u ckptuser); do
			tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxE "SLURM_JOB_ID=($jobs)" &&
				echo "process $(ps -o pid=,stat=,args= -p "$pid")"
		done
	} | grep .
}

# say_outputs: what the jobs of this test printed, where it failed.
say_outputs() {
	local out
	for out in "$MINICLUSTER_DIR/shared/ckptuser/$TEST_NAME"/*/out*; do
		[ ! -s "$out" ] || tap_diag "${out#"$MINICLUSTER_DIR/shared/ckptuser/"}:"$'\n'"$(tail -n 12 "$out")"
	done
}

end_jobs() {
	local status=$? job
	[ "$tap_failed" = 0 ] || say_outputs
	for job in $(sort -u "$JOBS_FILE"); do slurm scancel "$job" 2>/dev/null; done
	poll 30 no_leftovers >/dev/null || tap_diag "left behind: $(no_leftovers)"
	rm -f "$JOBS_FILE"
	exit $status
}

[ "$(id -u)" = 0 ] || tap_skip_all "the cluster tests need root (for contrib/minicluster)"
"$MINICLUSTER" status >/dev/null 2>&1 || tap_skip_all "no cluster; start one with: contrib/minicluster up"
eval "$("$MINICLUSTER" env)"
# last-*.t has the cluster for itself, which prove's rules alone do not give it.
exec 9<"$MINICLUSTER_DIR"
case $TEST_NAME in last-*) share=--exclusive ;; *) share=--shared ;; esac
flock $share --timeout 1200 9 || tap_skip_all "other tests have held the cluster for 20 minutes"
JOBS_FILE=$(mktemp)
trap end_jobs EXIT
trap 'exit 130' INT TERM
