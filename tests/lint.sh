#!/bin/bash
# Lint: the form (clang-format), C (clang-tidy), headers that compile alone, man pages (mandoc), shell (shellcheck).
# A tool that is not installed is skipped, aloud; under CI that is a failure.
#
# usage: tests/lint.sh [CFLAG...]    where slurm/*.h is; what the build has (-DCK_HAVE_...: else those
#                                    branches are not looked at). `make lint` passes both.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0
shopt -s nullglob

fail() {
	echo "lint: $*"
	bad=1
}

have() {
	command -v "$1" >/dev/null && return
	echo "lint: skipped: $1 is not installed (contrib/deps.sh --dev)"
	[ "${CI:-}" != true ] || bad=1
	return 1
}

sources=(lib/*.[ch] runtime/*.[ch] plugin/*.[ch] tests/*/*.[ch] contrib/examples/*/*.[ch])
headers=() units=()
for file in "${sources[@]}"; do
	case $file in *.h) headers+=("$file") ;; *) units+=("$file") ;; esac
done
flags=(-std=gnu11 -D_GNU_SOURCE '-DCK_VERSION="0"' -Ilib -Iruntime -Iplugin -Itests/support -Itests/fuzz -Itests/bench/lib "$@")
command -v mpicc >/dev/null && read -ra mpi < <(mpicc --showme:compile) && flags+=("${mpi[@]}")

if have clang-format; then
	clang-format --dry-run -Werror "${sources[@]}" 2>&1 | grep error: | head -n 20
	[ "${PIPESTATUS[0]}" = 0 ] || fail "the form is not that of .clang-format: make format"
fi

for file in "${headers[@]}"; do
	${CC:-cc} "${flags[@]}" -Wall -Wextra -Werror -fsyntax-only -x c "$file" -include "$file" -w 2>&1 ||
		fail "$file: does not compile alone"
done

if have clang-tidy; then
	tidy() { # EXTRA-CHECKS, files on stdin
		xargs -P 2 -n 6 sh -c 'c=$1 f=$2; shift 2; exec clang-tidy --quiet "--checks=$c" "$@" -- $f' \
			sh "$1" "${flags[*]}" 2>/dev/null | grep -E 'warning|error'
	}
	out=$(printf '%s\n' "${units[@]}" | grep -v ^tests/ | tidy ''
		printf '%s\n' "${units[@]}" | grep ^tests/ | tidy '-clang-analyzer-*')
	[ -z "$out" ] || fail "clang-tidy:
$out"
fi

if have mandoc; then
	for page in contrib/man/*.[1-9]; do
		mandoc -T lint -W warning "$page" || fail "$page: see above"
	done
fi

# Those that are run, and those that are sourced. What one sets and another reads is not looked for (SC2034, SC2154),
# and "[ … ]; tap_ok $?" is how tests are written here (SC2319).
mapfile -t scripts < <(find .ci contrib tests -type f -exec sh -c \
	'for f; do head -n 1 "$f" | grep -qaE "^#!/bin/(ba)?sh|^# shellcheck shell" && echo "$f"; done' sh {} + | sort)
[ ${#scripts[@]} -gt 0 ] || fail "no scripts found"
for script in "${scripts[@]}"; do
	bash -n "$script" || fail "$script: does not parse"
done
if have shellcheck; then
	shellcheck -x -S warning -e SC2034,SC2154,SC2319 "${scripts[@]}" || fail "shellcheck: see above"
fi

[ $bad = 0 ] && echo "lint: ok"
exit $bad
