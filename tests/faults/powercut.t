#!/bin/sh
# A bounded part of the power cuts: check-full makes more states, `make faults` all.
[ "${CK_FULL:-0}" = 1 ] && share=0/31 || share=0/251
exec "$(dirname "$0")/powercut" "${CKPT_BUILD:-build/release}" --share $share
