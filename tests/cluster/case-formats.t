#!/bin/bash
# What is on disk can be checked and read without slurm-ckpt.
. "$(dirname "$0")/train.sh"

EVERY=10

# refused COMMAND TEXT NAME: COMMAND fails and says TEXT.
refused() {
	local out
	out=$(eval "$1" 2>&1) && out="it passed: $out"
	tap_like "$out" "$2" "$3"
}

new_run steps
write_job job.sh -N1 -n4 --ckpt-keep=10 -- "$(train)"
job=$(submit job.sh)
wait_file '^ckpt: saved step 4' out 60
run_is_exact "$job" 4 0
count=$(run_steps | wc -l)
[ "$count" -ge 4 ]
tap_ok $? "there are $count committed steps to look at"
for step in $(run_steps); do
	dir=$(run_dir)/$step
	(cd "$dir" && sha256sum --strict --quiet -c SHA256SUMS)
	tap_ok $? "$step: sha256sum -c SHA256SUMS"
	tap_is "$(cd "$dir" && printf '%s\n' * | sed '/^SHA256SUMS$/d')" \
		"$(cut -c67- "$dir/SHA256SUMS" | sort)" "$step: which names every other file"
	python3 "$SUPPORT/read_shards.py" "$dir" >"$CASE/shards"
	tap_ok $? "$step: its shards are plain safetensors, with a place for each tensor"
	tap_is "$(grep -c ' adam/master F32 ' "$CASE/shards")" 4 \
		"$step: all four ranks have a piece of the weights"
	tap_like "$(python3 "$SUPPORT/course_reader.py" "$dir" 2>&1)" \
		"^step $(step_number "$step"), 4 ranks, 4 files, [1-9][0-9]* parameters\$" \
		"$step: five fields of the manifest are enough to check it"
done

# Can these readers fail?
bad=$CASE/bad
shard=$bad/rank-00002.0.safetensors
copy() { rm -rf "$bad" && cp -r "$(newest_step)" "$bad"; }
copy && printf x | dd of="$shard" bs=1 seek=9000 conv=notrunc status=none
refused "cd $bad && sha256sum --strict --quiet -c SHA256SUMS" 'rank-00002.0.safetensors: FAILED' \
	"a changed byte is seen by sha256sum"
refused "python3 $SUPPORT/course_reader.py $bad" 'rank-00002.0.safetensors: sha256 differs' \
	"and by the course's reader"
copy && sed -i '0,/"param_shard_offset": *\([1-9][0-9]*\)/s//"param_shard_offset": 1\1/' "$bad/manifest.json"
refused "python3 $SUPPORT/course_reader.py $bad" 'parameters: ' "parameters that do not tile are seen"
copy && truncate -s -1 "$shard"
refused "python3 $SUPPORT/read_shards.py $bad" 'rank-00002.0.safetensors: AssertionError' "a cut file is seen"
copy && sed -i 's/saved_offsets/saved_offset_/' "$shard"
refused "python3 $SUPPORT/read_shards.py $bad" 'rank-00002.0.safetensors: KeyError' \
	"a tensor without a place is seen"
done_testing
