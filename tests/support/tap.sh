# shellcheck shell=bash
#
# TAP for tests in bash, as tap.h is for those in C:
#
#	. "$(dirname "$0")/../support/tap.sh"
#	run_something; tap_ok $? "it runs"
#	done_testing				# prints the plan

tap_count=0 tap_failed=0 tap_planned=''

tap_diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

# tap_ok COND NAME: COND is an exit status ($?) or a shell command that is evaluated.
tap_ok() {
	local bad=$1
	[[ $bad =~ ^[0-9]+$ ]] || { eval "$1"; bad=$?; }
	tap_count=$((tap_count + 1))
	[ "$bad" != 0 ] || { echo "ok $tap_count - $2"; return 0; }
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $2"
	return 1
}

# tap_is GOT WANTED NAME
tap_is() {
	[ "$1" = "$2" ]
	tap_ok $? "$3" && return
	tap_diag "got:    '$1'"
	tap_diag "wanted: '$2'"
	return 1
}

# tap_like TEXT REGEX NAME: extended regular expression, as in [[ =~ ]]
tap_like() {
	[[ $1 =~ $2 ]]
	tap_ok $? "$3" && return
	tap_diag "text:   '$1'"
	tap_diag "wanted: /$2/"
	return 1
}

# tap_skip NAME REASON: one test that cannot run here
tap_skip() { tap_ok 0 "$1 # SKIP $2"; }

tap_skip_all() { echo "1..0 # SKIP $1"; exit 0; }

tap_plan() { tap_planned=$1; echo "1..$1"; }

# done_testing: the last line of a test; its status is that of the test.
done_testing() {
	[ -n "$tap_planned" ] || tap_plan "$tap_count"
	[ "$tap_planned" = "$tap_count" ] || tap_diag "planned $tap_planned tests, ran $tap_count"
	[ "$tap_failed" = 0 ] && [ "$tap_planned" = "$tap_count" ]
	exit $?
}
