#!/bin/bash
# Every call to the file system but reads and writes takes half a second: the steps do not notice,
# and the saves succeed.
. "$(dirname "$0")/train.sh"

full || tap_skip_all "takes a minute: make check-full"

STEP_MS=50 EVERY=40
LONGEST_MS=400		# a step may take so long on a busy machine, but not as long as one such call

# Each line that the program prints, with the milliseconds since 1970 before it.
# shellcheck disable=SC2016
STAMP='| while IFS= read -r line; do echo "${EPOCHREALTIME/[.,]/} $line"; done'

# longest_ms: between two steps that follow each other.
longest_ms() {
	sed -nE 's/^([0-9]+)[0-9]{3} step ([0-9]+) .*/\1 \2/p' "$CASE/out" |
		awk 'NR > 1 && $1 - last > most { most = $1 - last } { last = $1 } END { print most + 0 }'
}

new_run slow
write_job job.sh -N1 -n2 -- 'export SLURM_CKPT_IO_FAULT="meta:*:delay=500"' "$(train --log-every 1) $STAMP"
job=$(submit job.sh)
wait_file ' step 160 ' out 60
run_is_exact "$job" 2 0
tap_like "$(grep -c '^ckpt: saved step' "$CASE/out") $(grep -c '^ckpt: save of step' "$CASE/out")" '^([2-9]|[1-9][0-9]) 0$' \
	"every save succeeds, and there are several"
longest=$(longest_ms)
[ "$longest" -gt 0 ] && [ "$longest" -lt $LONGEST_MS ]
tap_ok $? "no step waits for the file system: the longest took $longest ms"
done_testing
