#!/bin/bash
# tests/twice: a live case that fails is run once more, and nothing that fails is lost.
cd "$(dirname "$0")/.." || exit 2
# shellcheck source=support/tap.sh
. tests/support/tap.sh
twice=$PWD/tests/twice
DIR=$(mktemp -d "${TEST_TMPDIR:-/var/tmp}/twice-XXXXXX") || exit 2
trap 'rm -rf "$DIR"' EXIT
cd "$DIR" || exit 2
mkdir live unit
unset PERL_TEST_HARNESS_DUMP_TAP

# test_file NAME COMMAND...: a test that counts its runs in NAME.runs
test_file() { printf '#!/bin/sh\necho x >>%s.runs\n%s\n' "$1" "$2" >"$1"; chmod +x "$1"; }
runs() { wc -l <"$1.runs"; }
twice() { rm -f ./*/*.runs; said=$("$twice" results '^live/' "$@" 2>&1); code=$?; }

good='echo ok 1; echo 1..1'
bad='echo not ok 1 - wanted; echo "# got tea"; echo 1..1'
once() { echo "[ \$(wc -l <$1.runs) = 2 ] || { $2; }; $good"; }
test_file live/good.t "$good"
test_file live/bad.t "$bad"
test_file live/flaky.t "$(once live/flaky.t "$bad; exit")"
test_file live/exit.t "$good; exit 3"
test_file live/flaky-exit.t "$(once live/flaky-exit.t "$good; exit 3")"
test_file live/died.t "$(once live/died.t 'kill -KILL $$')"
test_file live/skipped.t 'echo "1..0 # SKIP no cluster"'
test_file unit/good.t "$good"
test_file unit/flaky.t "$(once unit/flaky.t "$bad; exit")"

# summary FILES TESTS RESULT: of the last lines
summary() {
	local last
	last=$(tail -n 2 <<<"$said")
	[[ $last == "Files=$1, Tests=$2, "*$'\n'"Result: $3" ]]
}

twice live/good.t unit/good.t live/skipped.t
tap_is $code 0 "all pass"
summary 3 2 PASS
tap_ok $? "prove says so" || tap_diag "$said"
tap_is "$(grep -c '^Files=' <<<"$said")" 1 "once"

twice live/good.t live/flaky.t live/flaky-exit.t live/died.t unit/good.t live/skipped.t
tap_is $code 0 "three fail once"
summary 6 5 PASS
tap_ok $? "the summary counts every file once" || tap_diag "$said"
tap_is "$(tail -n 3 <<<"$said" | head -n 1)" "All tests successful." "with what prove says of a success"
tap_is "$(grep '^FLAKY' <<<"$said" | cut -d' ' -f2 | sort | paste -sd' ')" "live/died.t live/flaky-exit.t live/flaky.t" \
	"they are named under FLAKY"
tap_like "$said" $'FLAKY: live/flaky.t [^\n]*\n +not ok 1 - wanted\n +# got tea' "with the output of the failure"
tap_is "$(runs live/flaky.t) $(runs live/good.t)" "2 1" "only what failed runs again"

for file in live/bad.t live/exit.t; do
	twice live/good.t live/flaky.t $file
	tap_is "$((code != 0)) $(runs $file)" "1 2" "$file fails twice: the run has failed"
	[ "$(tail -n 1 <<<"$said")" = "Result: FAIL" ]
	tap_ok $? "... and says so" || tap_diag "$said"
	tap_like "$said" "$file +\(Wstat" "... by name"
done

twice live/good.t live/flaky.t unit/flaky.t
tap_is "$((code != 0)) $(runs unit/flaky.t)" "1 1" "a unit file gets no second run"
[ "$(tail -n 1 <<<"$said")" = "Result: FAIL" ]
tap_ok $? "... and its failure is one" || tap_diag "$said"

many=()
for i in 1 2 3 4 5 6; do
	test_file "live/flaky-$i.t" "$(once "live/flaky-$i.t" "$bad; exit 1")"
	many+=("live/flaky-$i.t")
done
twice live/good.t "${many[@]}"
tap_is "$((code != 0)) $(runs live/flaky-1.t)" "1 1" "where many fail there is no second run"
done_testing
