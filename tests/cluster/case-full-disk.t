#!/bin/bash
# The disk is full in the middle of a save: training goes on, older checkpoints stay, and when there
# is room again the next save succeeds.
. "$(dirname "$0")/train.sh"

EVERY=10000
SMALL=$MINICLUSTER_DIR/shared/small
BATCH=8
MODEL=(--hidden 256 --context 16 --embed 32)	# 2.9 MB of state
ROOM=$((1 << 20))				# for less than half of it

run=$SMALL/$TEST_NAME/run
run_dir() { echo "$run"; }

leave() {
	local status=$?
	(exit $status)
	(end_jobs)
	rm -rf "${run%/*}"
	exit $status
}

# One test at a time has this disk.
exec 8<"$SMALL"
flock --timeout 600 8 || tap_skip_all "$SMALL has been in use for 10 minutes"
trap leave EXIT
rm -rf "${run%/*}"
mkdir "${run%/*}" && chown ckptuser: "${run%/*}"

free() { echo $(($(stat -f -c '%a * %S' "$SMALL"))); }

# ask_save REGEX SECONDS: ask for a save, until the output has such a line.
ask_save() {
	as_user ckpt save "$run" >/dev/null && wait_file "$1" out "$2"
}

# goes_on: ten more steps.
goes_on() { wait_file "^step $(($(tail -n 1 "$CASE/losses" | cut -d' ' -f1) / 10 * 10 + 20)) " out 60; }

new_run full
write_job job.sh -N1 -n4 --ckpt-dir="${run%/*}" --ckpt-name=run --ckpt-keep=2 -- "$(train "${MODEL[*]}")"
job=$(submit job.sh)
wait_file '^step 10 ' out 60
ask_save '^ckpt: saved step' 60
tap_ok $? "there is a checkpoint"
older=$(run_steps)
fallocate -l $(($(free) - ROOM)) "${run%/*}/filler"
tap_ok $? "something else fills the disk: $(free) bytes are left, of $(du -sb "$run/$older" | cut -f1) that a save needs"

ask_save '^ckpt: save of step [0-9]+ failed: .*/\.saving-.*No space left on device' 60
tap_ok $? "the next save fails, naming a file and the cause"
goes_on
tap_ok $? "training goes on"
tap_is "$(run_steps)" "$older" "the older checkpoint stays"
as_user ckpt verify "$run" >"$CASE/verify" 2>&1
tap_is $? 0 "and is good" || tap_diag "$(cat "$CASE/verify")"
tap_is "$(compgen -G "$run/.saving-*")" '' "nothing of the failed save takes up room"

rm "${run%/*}/filler"
failed=$(grep -c '^ckpt: saved step' "$CASE/out")
as_user ckpt save "$run" >/dev/null
poll 60 eval '[ "$(grep -c "^ckpt: saved step" "$CASE/out")" -gt $failed ]'
tap_ok $? "with room again, the next save succeeds"
run_is_exact "$job" 4 0 "${MODEL[@]}"
done_testing
