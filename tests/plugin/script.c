/* What a script and a command line say about requeueing, output and checkpoints. */
#include <stdio.h>
#include <string.h>

#include "script.h"
#include "tap.h"

/* "c" ckpt on, "C" ckpt off, "o" another option of ours, "r" requeue, "m" open mode, "w" wrap, "p" parsable, "h" several components, then the time limit */
static const char *letters(const struct ck_says *says)
{
	static char out[48];

	snprintf(out, sizeof(out), "%s%s%s%s%s%s%s%s", says->ckpt ? says->ckpt_on ? "c" : "C" : "",
		 says->other ? "o" : "", says->requeue ? "r" : "", says->open_mode ? "m" : "",
		 says->wrap ? "w" : "", says->parsable ? "p" : "", says->het ? "h" : "",
		 says->time);
	return out;
}

static void words(void)
{
	static const struct {
		const char *word, *says;
	} cases[] = {
		{"", ""},
		{"-", ""},
		{"--", ""},
		{"--ckpt", "c"},
		{"--ckpt=on", "c"},
		{"--ckpt=off", "C"},
		{"--ckpt=banana", "c"},
		{"--ckptx", ""},
		{"--ckp", ""},
		{"--ckpt-keep=3", "o"},
		{"--ckpt-d=/x", "o"},
		{"--requeue", "r"},
		{"--requeu", "r"},
		{"--req", "r"},
		{"--requeue=expedite", "r"},
		{"--re", ""},
		{"--reservation=x", ""},
		{"--no-requeue", "r"},
		{"--no-r", "r"},
		{"--no-kill", ""},
		{"--nodes=2", ""},
		{"--open-mode=append", "m"},
		{"--op", "m"},
		{"--output=x", ""},
		{"--wrap=hostname", "w"},
		{"--wr", "w"},
		{"--wait", ""},
		{"requeue", ""},
		{"--parsable", "p"},
		{"--pars", "p"},
		{"--partition=x", ""},
		{":", "h"},
		{"a:b", ""},
		{"hetjob", ""},
		{"-t5", "5"},
		{"-t", ""},
		{"--time=1:30", "1:30"},
		{"--time", ""},
		{"--time-min=5", ""},
		{"--time=", ""},
		{"--ckpt-requeue=no", "or"},
		{"--ckpt-requeue=4", "o"},
		{"ckpt", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ck_says says = {false};

		ck_says_word(&says, cases[i].word);
		is_str(letters(&says), cases[i].says, "word '%s'", cases[i].word);
	}
}

static void scripts(void)
{
	static const struct {
		const char *text, *says, *name;
	} cases[] = {
		{"", "", "nothing"},
		{"#!/bin/sh", "", "one line without its end"},
		{"#!/bin/sh\n#SBATCH --ckpt\n", "c", "one option"},
		{"#!/bin/sh\n#SBATCH -n 2 --ckpt --open-mode=append --no-requeue", "crm", "many"},
		{"#!/bin/sh\n\n# text\n \t\n#SBATCH --ckpt\n", "c",
		 "blank lines and comments before"},
		{"#!/bin/sh\nset -e\n#SBATCH --ckpt\n", "", "none after the first command"},
		{"#!/bin/sh\n  # x\n#SBATCH --ckpt\n", "c", "an indented comment"},
		{"#!/bin/sh\n #SBATCH --ckpt\n", "", "an indented line is a comment"},
		{"#!/bin/sh\n##SBATCH --ckpt\n", "", "commented out"},
		{"#!/bin/sh\n#SBATCH -n 1 # --requeue\n", "", "a comment behind"},
		{"#!/bin/sh\n#SBATCH -n 1#--requeue\n", "", "a comment behind, close"},
		{"#!/bin/sh\n#SBATCH \"--ckpt\" '--ckpt-keep=1'\n", "co", "quoted"},
		{"#!/bin/sh\n#SBATCH -J \"a --requeue b\"\n", "", "inside a quoted word"},
		{"#!/bin/sh\n#SBATCH -J \"never closed --requeue\n", "",
		 "a quote that is not closed"},
		{"#!/bin/sh\n#SBATCH -t 5 --ckpt\n", "c5", "a time limit"},
		{"#!/bin/sh\n#SBATCH --time 5\n#SBATCH -t 7:00\n", "7:00", "the last one"},
		{"#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n", "h", "two components"},
		{"#!/bin/sh\n#SBATCH packjob\n", "h", "... as they were called before"},
		{"#!/bin/sh\n#SBATCH --ck\\pt\n", "c", "a backslash"},
		{"#!/bin/sh\n#SBATCH --ckpt\\", "c", "a backslash at the very end"},
		{"#!/bin/sh\n#SBATCH --ckpt=off\n#SBATCH --ckpt\n", "c", "the last one counts"},
		{"#!/bin/sh\n#SBATCH --ckpt\r\n#SBATCH --op=append\r\n", "cm", "lines with CR"},
		{"#!/bin/sh\n#PBS -r n\n", "r", "a line for PBS about rerunning"},
		{"#!/bin/sh\n#BSUB -n 4\n", "", "a line for LSF about something else"},
	};
	static char big[3000] = "#!/bin/sh\n#SBATCH -J ";
	struct ck_says says = {false};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		says = (struct ck_says){false};
		ck_says_script(&says, cases[i].text, strlen(cases[i].text));
		is_str(letters(&says), cases[i].says, "%s", cases[i].name);
	}
	memset(big + strlen(big), 'x', 2000);
	strcat(big, " --requeue\n");
	says = (struct ck_says){false};
	ck_says_script(&says, big, strlen(big));
	is_str(letters(&says), "r", "behind a word that is too long for us");
	says = (struct ck_says){false};
	ck_says_script(&says, "#SBATCH --ckpt", 9);
	is_str(letters(&says), "", "nothing beyond the length is read");
}

int main(void)
{
	words();
	scripts();
	return done_testing();
}
