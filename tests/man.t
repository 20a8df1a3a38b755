#!/bin/bash
# The manual pages and the README say what the code has: options, defaults, environment variables, exit codes.
#
# Needs no build. A name in the sources that no page explains is a failure, and so is one of a page that the
# sources do not have.
cd "$(dirname "$0")/.." || exit 2
# shellcheck source=support/tap.sh
. tests/support/tap.sh
man=contrib/man

# same NAME CODE PAGE: two lists, one word a line; what stands in one of them only is told.
same() {
	local missing extra
	missing=$(comm -23 <(sort -u <<<"$2") <(sort -u <<<"$3") | tr '\n' ' ')
	extra=$(comm -13 <(sort -u <<<"$2") <(sort -u <<<"$3") | tr '\n' ' ')
	[ -n "$2" ] && [ -z "$missing$extra" ]
	tap_ok $? "$1" || tap_diag "not explained: ${missing:-none}; explained, but not in the code: ${extra:-none}"
}

strings() { grep -oE '"[^"]*"' | tr -d '"'; }

# The values of the macros that match, of all headers.
macros() {
	sed -e :join -e '/\\$/N; s/\\\n//; tjoin' lib/*.h runtime/*.h plugin/*.h |
		sed -nE "s/^#define $1[[:space:]]+//p" | sed 's/ *\/\*.*//'
}

# Options of a page's .It lines, with the dashes: "--json", "-j".
items() { grep -E '^\.It .*Fl' | grep -oE 'Fl (Fl )?[A-Za-z0-9-]+' | sed -E 's/^Fl Fl /--/; s/^Fl /-/'; }

section() { sed -n "/^\.Sh $2/,/^\.Sh/p" "$man/$1"; }

# --- the plugin ---

plugin=$(sed -n '/names\[CK_OPT_COUNT\]/,/};/p' plugin/opts.c | strings | sed 's/^/--/')
same "ckpt-spank(8) has the options of the plugin" "$plugin" "$(section ckpt-spank.8 OPTIONS | items)"
same "so has the README" "$plugin" "$(grep -oE '^\| `--ckpt[a-z-]*' README.md | grep -oE -- '--.*')"
same "each has its help" "$(sed -n '/CK_OPT_CKPT = 0/,/CK_OPT_COUNT/p' plugin/opts.h | grep -oE 'CK_OPT_[A-Z_]+' | grep -v COUNT)" \
	"$(sed -n '/help\[CK_OPT_COUNT\]/,/};/p' plugin/spankopts.c | grep -oE '^\s*\[CK_OPT_[A-Z_]+' | grep -oE 'CK_OPT.*')"

# default OPTION VALUE: "The default is VALUE." in its item, and VALUE in its row of the README.
default() {
	local text
	text=$(section ckpt-spank.8 OPTIONS | sed -n "/^\.It Fl Fl $1 Ns/,/^\.It/p" | tr '\n' ' ')
	[[ $text =~ "default is "(.Li |.Cm )?$2 ]]
	tap_ok $? "ckpt-spank(8): --$1 is $2 by default"
	grep -E "^\| \`--$1[=\`]" README.md | cut -d'|' -f3 | grep -qw -- "$2"
	tap_ok $? "README: the same"
}
default ckpt-keep "$(macros CK_DEFAULT_KEEP)"
default ckpt-every "$(($(macros CK_DEFAULT_EVERY_SECONDS) / 60))min"
default ckpt-margin "$(macros CK_DEFAULT_MARGIN_SECONDS)s"

# --- the command ---

verbs=$(sed -nE 's/.*\.name = "([a-z]+)",/\1/p' runtime/cmd_*.c)
same "ckpt(1) has the verbs of the command" "$(printf '%s\nhelp' "$verbs")" \
	"$(section ckpt.1 SYNOPSIS | sed -nE 's/^\.Cm ([a-z]+).*/\1/p')"
same "and explains each" "$verbs" "$(section ckpt.1 DESCRIPTION | sed -nE 's/^\.It Cm ([a-z]+).*/\1/p')"

long=$(sed -nE '/static const struct option/,/};/p' runtime/cmd_*.c | grep -oE '\{"[a-z-]+"' | strings | sed 's/^/--/')
short=$(grep -ohE '":[a-zA-Z:]+"' runtime/cmd_*.c | tr -d '":\n' | sed 's/./-&\n/g')
same "ckpt(1) has the options of all verbs" "$(printf '%s\n' "$long" "$short" --version -V | grep .)" \
	"$(section ckpt.1 DESCRIPTION | sed -n '/^The options are/,$p' | items)"

for file in $(grep -lE 'static const struct option' runtime/cmd_*.c); do
	help=$(sed -nE '/\.help = /,/,$/p' "$file")
	for option in $(sed -nE '/static const struct option/,/};/p' "$file" | grep -oE '\{"[a-z-]+"' | strings); do
		[[ $help == *"--$option"* ]] || { [ "$option" = help ] && [[ $help != *--* ]]; } ||
			unhelpful+="$file: --$option "
	done
done
[ -z "${unhelpful:-}" ]
tap_ok $? "the help of each verb has its options" || tap_diag "$unhelpful"

codes=$(sed -n '/^enum ck_cmd_exit/,/};/p' runtime/cmd.h | grep -oE '= [0-9]+' | tr -d '= ')
same "ckpt(1) has the exit codes" "$codes" "$(section ckpt.1 'EXIT STATUS' | sed -nE 's/^\.It ([0-9]+)$/\1/p')"

# --- environment and exit codes of jobs ---

ours=$(macros 'CK_ENV_[A-Z_]+' | grep -ohE '"SLURM_[A-Z_]+"' | strings | grep -vx SLURM_SPANK_)
# What begins with SBATCH_CKPT is any option, explained as such.
others=$(grep -ohE '"(SLURM|SBATCH|SCRATCH)[A-Z_]*[A-Z]"' lib/*.c runtime/*.c plugin/*.c | strings |
	grep -vE '^(SLURM_(SPANK_)?CKPT_|SBATCH_CKPT)' | sort -u)
for name in $ours; do
	grep -qwE -- "$name" $man/ckpt-environment.7 || missing_env+="$name "
done
[ -n "$ours" ] && [ -z "${missing_env:-}" ]
tap_ok $? "ckpt-environment(7) has each variable of ours" || tap_diag "$missing_env"
for name in $others; do
	grep -qw -- "$name" $man/*.[1-9] || missing_other+="$name "
done
[ -n "$others" ] && [ -z "${missing_other:-}" ]
tap_ok $? "the pages have each other variable that is read" || tap_diag "$missing_other"
stale=$(grep -ohE 'SLURM_CKPT_[A-Z_]+' $man/*.[1-9] README.md | sort -u | grep -vxF "$ours")
[ -z "$stale" ]
tap_ok $? "and no other of ours" || tap_diag "$stale"
grep -A8 "CK_ENV_TIMEOUT\|Ev SLURM_CKPT_TIMEOUT" $man/ckpt-environment.7 | grep -q "default is $(macros CK_DEFAULT_TIMEOUT_SECONDS)\."
tap_ok $? "the silence that is suffered by default is right"

same "the plugin and <ckpt.h> ask for a requeue by one exit code" "$(macros CKPT_EXIT_REQUEUE)" "$(macros CK_EXIT_REQUEUE)"
for code in $(macros CK_EXIT_REQUEUE) $(macros CK_EXIT_REFUSED); do
	grep -q "^\.It \"exit code $code\"" $man/ckpt-spank.8
	tap_ok $? "ckpt-spank(8) has exit code $code"
done
done_testing
