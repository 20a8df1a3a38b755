#!/bin/bash
# A resume on other ranks takes each rank its own state and 256 MiB, and reads each stored byte once.
. "$(dirname "$0")/resume.sh"

# What a rank needs beside its state does not grow with it: messages (exchange.h), blocks on their way from disk
# (shard.h), 80 MiB or so. Under 256 MiB a rank that held a small state twice would not be seen; so the short
# version has an eighth of the state, and a limit below those 80 and a rank's own 85 MiB.
big=2048 budget=256
[ "$FULL" = 1 ] || { big=256 budget=112; }

resume 2 "$DIR/run" save=1 big=$big
tap_is "$(count_ranks) $(facts code saved)" "2 0 0" "$big MiB saved by 2 ranks"
# RLIMIT_DATA counts all private memory that can be written to, touched or not: what Open MPI shares between
# ranks is not in it.
resume 3 "$DIR/run" big=$big budget=$budget
tap_resumed 3 1 ok "resumed by 3 under a limit of each rank's own state and $budget MiB"
[ "$(largest extra)" -lt $((budget * 1024)) ]
tap_ok $? "... of which $(($(largest extra) / 1024)) MiB were in use at most (RSS)"

# Headers are read twice, 4 KiB a file: rank 0 plans by them first. The rest is the manifest, on rank 0.
stored=$(cat "$DIR"/run/step-*/*.safetensors | wc -c)
files=("$DIR"/run/step-*/*.safetensors)
around=$((${#files[@]} * 4096 + 65536))
[ "$(sum read)" -ge "$stored" ] && [ "$(sum read)" -le $((stored + around)) ]
tap_ok $? "... $stored bytes are stored, $(sum read) were read"

resume 3 "$DIR/run" big=$big budget=48
tap_is "$(count_ranks) $(facts code untouched)" "3 -3 1" "the limit holds: with 48 MiB all fail, before anything moves" ||
	tap_diag "$said"
tap_like "$said" "text=rank [0-2][^:]*: out of memory: [0-9]+ bytes wanted" "... and say how much is wanted"
done_testing
