# shellcheck shell=bash
#
# Library of resume-*.t: starts of the program resume.c, real ranks and real files.
#
#	. "$(dirname "$0")/resume.sh"		# skips the whole test where there is no MPI
#	resume 6 "$DIR/run" save=1		# on 6 ranks; what they say goes to $said
#	tap_is "$(facts code wrong)" "1 0" "…"	# of all ranks: "1 0,7" when one has another

set -u
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=../support/tap.sh
. tests/support/tap.sh

BUILD=${CKPT_BUILD:-$PWD/build/release}
FULL=${CK_FULL:-0}
[ -x "$BUILD/tests/mpi/resume.bin" ] || tap_skip_all "no MPI to build with"
DIR=$(mktemp -d "${TEST_TMPDIR:-/var/tmp}/resume-XXXXXX") || exit 2
[ "${TEST_KEEP:-0}" = 1 ] || trap 'rm -rf "$DIR"' EXIT
said='' mpirun_options=()

# resume RANKS RUN [NAME=VALUE ...]
resume() {
	local ranks=$1
	shift
	said=$(tests/mpi/start "${mpirun_options[@]}" -n "$ranks" "$BUILD/tests/mpi/resume.bin" "$@" 2>&1)
}

# The values of these facts; where ranks differ, all there are, with commas.
facts() {
	local name out=''
	for name in "$@"; do
		out+=" $(sed -nE "s/^rank=.* $name=([^ ]*).*/\1/p" <<<"$said" | sort -u | paste -sd,)"
	done
	echo "${out# }"
}

largest() { sed -nE "s/^rank=.* $1=([^ ]*).*/\1/p" <<<"$said" | sort -n | tail -n 1; }
sum() { sed -nE "s/^rank=.* $1=([^ ]*).*/\1/p" <<<"$said" | awk '{ n += $1 } END { printf "%.0f\n", n }'; }
count_ranks() { grep -c '^rank=' <<<"$said"; }

# All these ranks resumed at STEP and have what they should. tap_resumed RANKS STEP OWN WHAT
tap_resumed() {
	tap_is "$(count_ranks) $(facts code step wrong own saved)" "$1 1 $2 0 $3 0" "$4" || tap_diag "$said"
}
