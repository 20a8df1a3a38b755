#!/bin/bash
# At submission: requeueing and appended output are arranged where nobody has spoken of them.
. "$(dirname "$0")/plugin.sh"

new_case arranged
both='the job may be requeued, its output is appended to the file'

# script FILE LINE
script() {
	write "$1" <<-END
	#!/bin/bash
	#SBATCH -J ckpt-arranged -t 2 --ckpt-dir=runs
	$2
	env | grep -E '^SBATCH_(REQUEUE|OPEN_MODE)='
	echo "done"
	END
}
script plain.sh '#'
script requeue.sh '#SBATCH --requeue'
script no-requeue.sh '#SBATCH --no-requeue'
script truncate.sh '#SBATCH --open-mode=truncate'

# gives NAME REQUEUE APPENDED LEFT NOTICE COMMAND...: Requeue of the job; 1 if its output file keeps
# what was there; lines of its environment with SBATCH_...; and what sbatch says.
gives() {
	local name=$1 requeue=$2 appended=$3 left=$4 notice=$5 out=out-$((++cases)) job
	shift 5
	echo "from before" >"$CASE/$out"
	chown ckptuser: "$CASE/$out"
	job=$(as_user env SBATCH_OUTPUT="$out" "$@" 2>"$CASE/notices")
	echo "$job" >>"$JOBS_FILE"
	tap_is "$(sed -n 's/.*: ckpt: //p' "$CASE/notices")" "$notice" "$name: the notice" || tap_diag "$(cat "$CASE/notices")"
	tap_is "$(job_field "$job" Requeue)" "$requeue" "$name: requeue"
	wait_file '^done' "$out" 60
	tap_is "$(count_lines 'from before' "$out")" "$appended" "$name: what was in the output file"
	tap_is "$(count_lines '^SBATCH_' "$out")" "$left" "$name: the job's environment"
}
cases=0
gives "nobody speaks" 1 1 0 "$both" sbatch --parsable plain.sh
gives "the script: --requeue" 1 1 0 'its output is appended to the file' sbatch --parsable requeue.sh
gives "the script: --no-requeue" 0 1 0 'its output is appended to the file' sbatch --parsable no-requeue.sh
gives "the script: --open-mode" 1 0 0 'the job may be requeued' sbatch --parsable truncate.sh
gives "the command line: --no-requeue" 0 1 0 'its output is appended to the file' sbatch --parsable --no-requeue plain.sh
gives "the command line, abbreviated" 1 0 0 'the job may be requeued' sbatch --parsable --open-m=truncate plain.sh
gives "the environment" 1 0 2 '' env SBATCH_REQUEUE=1 SBATCH_OPEN_MODE=truncate sbatch --parsable plain.sh
gives "a script's own argument" 1 1 0 "$both" sbatch --parsable plain.sh --no-requeue --open-mode=truncate
gives "--wrap" 1 1 0 "$both" sbatch --parsable -t 2 -J ckpt-arranged --ckpt-dir=runs \
	--wrap 'env | grep -E "^SBATCH_(REQUEUE|OPEN_MODE)="; echo done'
gives "a script from standard input" 1 0 0 \
	'the batch script could not be examined; if it does not have them, add --requeue --open-mode=append' \
	sh -c 'sbatch --parsable --ckpt <plain.sh'
gives "--ckpt-requeue=no" 1 1 0 'its output is appended to the file' sbatch --parsable --ckpt-requeue=no plain.sh
gives "SBATCH_CKPT_REQUEUE=no" 1 1 0 'its output is appended to the file' env SBATCH_CKPT_REQUEUE=no sbatch --parsable plain.sh
gives "a limit that the margin uses up" 1 1 0 \
	"the time limit of 60 s minus --ckpt-margin of 60 s leaves no time to train: a program with the library stops at once, and after three such starts the job is held. Use a longer --time, or a --ckpt-margin below 60s; $both" \
	sbatch --parsable -t 1 plain.sh
gives "a smaller margin" 1 1 0 "$both" sbatch --parsable -t1 --ckpt-margin=20s plain.sh
gives "--ckpt=off" 1 0 0 '' sbatch --parsable --ckpt=off plain.sh

# Where the output is parsed, one line at most, and after the id.
new_case parsed
script plain.sh '#'
ids() { grep -oE '^(Submitted batch job )?[0-9]+' <<<"$1" | grep -oE '[0-9]+$' >>"$JOBS_FILE"; }
sed -i 's/--ckpt-dir=runs/--ckpt/' "$CASE/plain.sh"
for options in --parsable ''; do
	text=$(as_user env -u SCRATCH sh -c "sbatch $options -o /dev/null plain.sh 2>&1")
	ids "$text"
	tap_like "$(head -n 1 <<<"$text")" '^(Submitted batch job )?[0-9]+$' "sbatch $options 2>&1: the id comes first"
	tap_is "$(sed 1d <<<"$text")" "sbatch: ckpt: checkpoints go to $CASE/ckpt; --ckpt-dir or \$SCRATCH change that; $both" \
		"... then one line with all that is to be known"
done
text=$(as_user env -u SCRATCH sh -c 'sbatch --parsable -o /dev/null plain.sh 2>/dev/null')
ids "$text"
tap_like "$text" '^[0-9]+$' "the standard output has the id alone"
text=$(as_user env -u SCRATCH sh -c 'sbatch --parsable -p nowhere plain.sh 2>&1')
tap_is "$(grep -c 'ckpt:' <<<"$text")" 0 "a job that is not submitted: not a word on how it will be"
text=$(as_user env -u SCRATCH script -qec 'sbatch -o /dev/null plain.sh' /dev/null </dev/null | tr -d '\r')
tap_like "$(tail -n 1 <<<"$text")" '^Submitted batch job [0-9]+$' "on a terminal they come at once"
tap_is "$(grep -c '^sbatch: ckpt: ' <<<"$text")" 2 "... one by one"
echo "${text##* }" >>"$JOBS_FILE"

# Heterogeneous jobs and steps.
new_case het
write het.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-arranged -o out-%j -t 2 -n1
#SBATCH hetjob
#SBATCH -n1
srun --het-group=0,1 sh -c 'echo "ran $(env | grep -c ^SLURM_CKPT_DIR)"'
srun --ckpt --het-group=1 echo "with checkpoints"
echo "status $?"
END
refused='ckpt: checkpointing does not support heterogeneous jobs and steps'
tap_like "$(said sbatch --ckpt het.sh)" "sbatch: error: $refused.*--ckpt=off" "sbatch: a script with hetjob is refused"
tap_like "$(said sbatch --ckpt -n1 -t 2 : -n1 --wrap true)" "$refused" "sbatch: components on the command line are refused"
tap_like "$(said salloc --ckpt -n1 -t 2 : -n1 true)" "$refused" "so it is by salloc"
tap_like "$(said timeout 60 srun --ckpt -n1 -t 2 true : -n1 true)" "$refused" "and by srun"
job=$(submit het.sh)
wait_end "$job" 120
tap_is "$(count_lines '^ran 0$' "out-$job")" 2 "one without --ckpt runs"
tap_is "$(count_lines "$refused" "out-$job").$(count_lines '^with' "out-$job").$(count_lines '^status 1$' "out-$job")" 1.0.1 \
	"... and a step of it with --ckpt is refused"
no_drained
done_testing
