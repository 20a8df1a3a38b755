#!/bin/bash
# A rank that is killed in the middle of a resume: the others end in time, name it, and can start again.
. "$(dirname "$0")/resume.sh"

patience=4
export SLURM_CKPT_TIMEOUT=$patience
# Else mpirun kills the others, and what they would have done is not seen.
mpirun_options=(--enable-recovery)

within() { awk -v got="$1" -v most="$2" 'BEGIN { exit !(got != "" && got <= most) }'; }

# killed RANK RULES WHERE TEXT
killed() {
	local what="rank $1 is killed $3"
	SLURM_CKPT_IO_FAULT=$2 resume 3 "$DIR/run" faulty="$1" big=96
	tap_is "$(count_ranks) $(facts code own)" "2 -9 new" "$what: the others fail, and hand nothing over" ||
		tap_diag "$said"
	tap_is "$(grep -c "^rank=$1 " <<<"$said")" 0 "... it did not live to tell"
	tap_is "$(grep '^rank=' <<<"$said" | grep -cE "text=$4.* rank $1\b")" 2 "... both name it, and where they were" ||
		tap_diag "$said"
	# comm.h: every wait ends within twice the time-out; the rest is for a crowded machine.
	within "$(largest seconds)" $((2 * patience + 60))
	tap_ok $? "... within $((2 * patience)) s" || tap_diag "$(largest seconds) s"
	within "$(largest took)" $((patience - 1)) && [ "$(facts again)" = -9 ]
	tap_ok $? "... and the next call fails at once" || tap_diag "$said"
}

resume 6 "$DIR/run" save=1 big=96
tap_is "$(count_ranks) $(facts code saved)" "6 0 0" "6 ranks save"
# Each rank has two large files, of 16 MiB: their headers, then blocks of 4 MiB. It dies with some of these read
# and handed on, and some not.
middle="pread:*.0.safetensors:kill=KILL:after=6"
killed 1 "$middle" "while pieces are exchanged" "exchange: waiting for pieces of items"
killed 0 "$middle" "while pieces are exchanged" "exchange: waiting for pieces of items"
if [ "$FULL" = 1 ]; then
	killed 2 "$middle" "while pieces are exchanged" "exchange: waiting for pieces of items"
	killed 2 "open:*.safetensors:kill=KILL" "at its first header" "agreement"
	tap_is "$(facts untouched)" 1 "... and nothing has been written to"
	killed 0 "open:*/manifest.json:kill=KILL" "before it proposes a checkpoint" ""
	tap_is "$(facts untouched)" 1 "... and nothing has been written to"
fi
mpirun_options=()
unset SLURM_CKPT_TIMEOUT
resume 3 "$DIR/run" big=96
tap_resumed 3 1 ok "the same start without it resumes"
done_testing
