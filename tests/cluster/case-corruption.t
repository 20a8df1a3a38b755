#!/bin/bash
# Bits, bytes and files that are wrong: each such checkpoint is refused by name, with what is wrong in
# it, in seconds; with no good one left nothing is trained.
. "$(dirname "$0")/train.sh"

EVERY=10

# flip FILE OFFSET: one bit.
flip() {
	local byte
	byte=$(od -An -tu1 -j "$2" -N1 "$1")
	printf "\\x$(printf %02x $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# swap FILE FILE
swap() { mv "$1" "$1.x" && mv "$2" "$1" && mv "$1.x" "$2"; }

has_steps() { [ "$(run_steps | wc -l)" -ge "$1" ]; }
resumed_or_not() { grep -qE '^ckpt: (fell back|resumed|starting|cannot)' "$CASE/out"; }

# starts_again TIMES: and says within seconds what it makes of the checkpoints.
starts_again() {
	local began
	: >"$CASE/out"
	as_user scontrol requeue "$job"
	wait_restart "$job" "$1" 60
	began=$SECONDS
	poll 30 resumed_or_not
	took=$((SECONDS - began))
	[ $took -le 10 ]
	tap_ok $? "start $1: what becomes of it is clear after $took s"
}

refused() { # NAME REGEX WHAT
	tap_like "$(grep "^ckpt: refused step $(step_number "$1"):" "$CASE/out")" "$2" "$3"
}

new_run bad
write_job job.sh -N1 -n4 --ckpt-requeue=no --ckpt-name=run --ckpt-keep=20 -- "$(train)"
job=$(submit job.sh)
poll 60 has_steps 5
as_user scancel --signal=USR1 "$job"
wait_end "$job" 30
mapfile -t steps < <(run_steps | tac)
[ ${#steps[@]} -ge 5 ]
tap_ok $? "a run is stopped, with ${#steps[@]} checkpoints"
cp -a "$(run_dir)" "$CASE/good"
cd "$(run_dir)" || exit 1

# Nothing good is left: that is no fresh start.
for step in "${steps[@]}"; do flip "$step/rank-00003.0.safetensors" 50000; done
starts_again 1
wait_end "$job" 60
tap_is "$(job_field "$job" JobState) $(job_field "$job" ExitCode) $(grep -c '^step ' "$CASE/out")" 'FAILED 1:0 0' \
	"with no good checkpoint the job fails with 1, and nothing is trained"
tap_like "$(grep '^ckpt: cannot resume' "$CASE/out")" "none of ${#steps[@]} checkpoints is good: .*rank-00003" \
	"it says that none is good, and why"
rm -rf step-* && cp -a "$CASE"/good/step-* .

# Four bad ones, each in its own way; and the hint is lost.
hex='[0-9a-f]{64}'
flip "${steps[0]}/rank-00001.0.safetensors" 70000
size=$(stat -c %s "${steps[1]}/rank-00002.0.safetensors")
truncate -s -1 "${steps[1]}/rank-00002.0.safetensors"
swap "${steps[2]}"/rank-0000{1,2}.0.safetensors
sed -i -E '0,/"sha256": *"/s/("sha256": *")..../\10000/' "${steps[3]}/manifest.json"
: >latest
starts_again 2
refused "${steps[0]}" "rank-00001.0.safetensors: chunk 0, bytes .*crc32 is [0-9a-f]{8}, [0-9a-f]{8} was written" \
	"a flipped bit: file, chunk, bytes and both digests are named"
refused "${steps[1]}" "rank-00002.0.safetensors: .*($size.*$((size - 1))|$((size - 1)).*$size)" \
	"a cut byte: file and both sizes are named"
refused "${steps[2]}" "rank-0000([12]).0.safetensors: tensor 'rank-[12]/rng': per-rank, but not named rank-[12]/" \
	"swapped shards: a file and whose it is are named"
refused "${steps[3]}" "SHA256SUMS: line 1 is '$hex.*, by the manifest it is '0000[0-9a-f]{60}  rank-00000.0.safetensors'" \
	"an edited manifest: line, file and both digests are named"
wait_file "^ckpt: fell back to step $(step_number "${steps[4]}"), .*: 4 newer refused" out 1
tap_ok $? "the newest good one is taken"
run_is_exact "$job" 4 $(($(step_number "${steps[0]}") - $(step_number "${steps[4]}")))
tap_is "$(cat latest)" "$(run_steps | tail -n 1)" "the hint is mended"
done_testing
