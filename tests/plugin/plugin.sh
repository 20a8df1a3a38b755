# shellcheck shell=bash
#
# Library of the plugin's cluster tests, on top of tests/cluster/cluster.sh. Use:
#
#	. "$(dirname "$0")/plugin.sh"	# skips the whole test if no cluster with the plugin is up
#
# Directories are shared/ckptuser/plugin/<test>/<case>, runs below $CASE/runs unless a test says else.

# shellcheck source=../cluster/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/cluster.sh"
TEST_NAME=plugin/$(basename "$0" .t)

as_user sbatch --help 2>/dev/null | grep -q '\[ckpt\]' ||
	tap_skip_all "the cluster has no ckpt plugin; add a line to $MINICLUSTER_DIR/etc/plugstack.conf.d"

# write FILE: a job's file below $CASE, from standard input.
write() { cat >"$CASE/$1" && chmod 755 "$CASE/$1" && chown ckptuser: "$CASE/$1"; }

# as_user with what it says on both outputs; the exit status is kept.
said() { as_user "$@" 2>&1; }

run_dir() { echo "$CASE/runs/mini-$1"; }	# of a job's default run

count_lines() { grep -cE -- "$1" "$CASE/$2" || true; }	# REGEX FILE

# hurry of cluster.sh, but not within 3 s of the requeue: slurmd takes a start in the same second for
# the one it has just killed ("Job credential revoked"), and the job ends as FAILED.
eval "$(declare -f hurry | sed '1s/hurry/hurry_now/')"
hurry() {
	local requeued
	requeued=$(date -d "$(job_field "$1" SubmitTime)" +%s 2>/dev/null) || return 1
	[ $(($(date +%s) - requeued)) -lt 3 ] || hurry_now "$1"
}

# What this test's submissions print is kept for it to look at, not for the reader of the log.
submit_kept() { submit "$@" 2>>"$CASE/notices"; }

no_drained() {
	local drained
	drained=$(drained_nodes)
	[ -z "$drained" ]
	tap_ok $? "no node is drained" || tap_diag "$drained"
}

# A program without the library: exits 75 as soon as it gets SIGTERM, 0 in the job's second start.
write_stopper() {
	write stopper <<-'END'
	#!/bin/bash
	trap 'echo "stopper $SLURM_PROCID: saving"; sleep 0.5; exit 75' TERM
	echo "stopper $SLURM_PROCID: start ${SLURM_RESTART_COUNT:-0}"
	[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 0
	while :; do sleep 0.1; done
	END
}

# What the library does to a run directory, in a few lines: `pretend open`, `pretend save STEP`,
# `pretend mark requeue|stop STEP REASON`, `pretend complete STEP`.
write_pretend() {
	write pretend <<-'END'
	#!/bin/bash
	dir=$SLURM_CKPT_DIR
	IFS=/ read -r cluster job restart <<<"$SLURM_CKPT_JOB"
	who="\"job\": {\"cluster\": \"$cluster\", \"id\": \"$job\", \"restart_count\": $restart, \"step_id\": \"$SLURM_STEP_ID\"}"
	now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	g=0
	for claim in "$dir"/.gen-*; do [ ! -d "$claim" ] || [ "${claim##*-}" -le $g ] || g=${claim##*-}; done
	case $1 in
	open)
		mkdir "$dir/.gen-$((g + 1))"
		cat >"$dir/.gen-$((g + 1))/claim.json" <<-JSON
		{"schema_version": 1, "generation": $((g + 1)), $who, "submit_time": null, "host": "$(hostname)",
		"pid": $$, "time": "$now", "nonce": "0123456789abcdef0123456789abcdef", "world_size": 1,
		"resume": "fresh", "resumed": null, "refused": []}
		JSON
		;;
	save) mkdir "$(printf '%s/step-%010d.g%d' "$dir" "$2" $g)" ;;
	mark) echo "{\"schema_version\": 1, \"want\": \"$2\", $who, \"step\": $3, \"reason\": \"$4\"}" >"$dir/.gen-$g/mark.json" ;;
	complete) sed -i "s/\"complete_step\": null/\"complete_step\": $2/" "$dir/run.json" ;;
	esac
	END
}
