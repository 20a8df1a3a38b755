#!/bin/bash
# One state, saved and resumed by changing numbers of real ranks, online and by `ckpt reshard`: bit for bit.
. "$(dirname "$0")/resume.sh"

# Each start resumes what the one before it saved. chain NAME WORLDS [NAME=VALUE]
chain() {
	local run=$DIR/$1 step=0 before='' ranks
	for ranks in $2; do
		resume "$ranks" "$run" save=1 "${@:3}"
		[ $step = 0 ] || tap_resumed "$ranks" $step ok "$1: $before ranks -> $ranks, and saves again"
		step=$((step + 1)) before=$ranks
	done
	"$BUILD/ckpt" verify "$run" >"$DIR/out" 2>&1
	tap_ok $? "$1: all checkpoints verify" || tap_diag "$(cat "$DIR/out")"
	said=$("$BUILD/ckpt" diff "$run@1" "$run@$step")
	tap_is "$(grep -c ': different:' <<<"$said") $(grep -c '^step: different: 1 of 1' <<<"$said")" "1 1" \
		"$1: the last differs from the first in nothing but the step" || tap_diag "$said"
}

# The same, but the checkpoint is written anew for each number of ranks. offline NAME WORLDS
offline() {
	local from=$DIR/$1-0 i=0 first ranks to
	first=${2%% *}
	resume "$first" "$from" save=1
	"$BUILD/ckpt" reshard "$from@1" "$DIR/$1-same" --world "$first" >"$DIR/out" 2>&1
	tap_ok $? "$1: $first ranks -> $first by ckpt reshard" || tap_diag "$(cat "$DIR/out")"
	resume "$first" "$DIR/$1-same"
	tap_resumed "$first" 1 ok "$1: ... resumes, each rank with its own"
	for ranks in ${2#* }; do
		i=$((i + 1)) to=$DIR/$1-$i
		"$BUILD/ckpt" reshard "$from@latest" "$to" --world "$ranks" --per-rank=drop >"$DIR/out" 2>&1
		tap_ok $? "$1: to $ranks ranks by ckpt reshard" || tap_diag "$(cat "$DIR/out")"
		resume "$ranks" "$to" drop=1
		tap_resumed "$ranks" 1 new "$1: ... resumes on $ranks"
		from=$to
	done
	"$BUILD/ckpt" diff "$DIR/$1-0@1" "$from@latest" >"$DIR/out" 2>&1
	tap_is "$(grep -v 'items equal' "$DIR/out")" "own: only-a: bytes of $first ranks" \
		"$1: nothing but the bytes of single ranks is gone"
}

chain online "8 6 16 1 8"
offline offline "8 6 16 1 8"
if [ "$FULL" = 1 ]; then
	chain primes "2 3 5 7 11 13 2"
	chain large "4 3 8 1 5 4" big=40
	offline odd "3 7 2 12 5"
fi
done_testing
