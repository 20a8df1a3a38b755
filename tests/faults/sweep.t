#!/bin/sh
# A bounded part of the sweep: some of the calls of each life; check-full takes more of them, `make faults` all.
[ "${CK_FULL:-0}" = 1 ] && share=0/9 || share=0/61
exec "$(dirname "$0")/sweep" "${CKPT_BUILD:-build/release}" --share $share
