#!/bin/bash
# At submission: requeueing and appended output are arranged where nobody has spoken of them.
. "$(dirname "$0")/plugin.sh"

new_case arranged
both='the job may be requeued, its output is appended to the file'

# script FILE LINE
script() {
	write "$1" <<-END
	#!/bin/bash
	#SBATCH -J ckpt-arranged -t 1 --ckpt-dir=runs
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
gives "--wrap" 1 1 0 "$both" sbatch --parsable -t 1 -J ckpt-arranged --ckpt-dir=runs \
	--wrap 'env | grep -E "^SBATCH_(REQUEUE|OPEN_MODE)="; echo done'
gives "a script from standard input" 1 0 0 \
	'the batch script could not be examined; if it does not have them, add --requeue --open-mode=append' \
	sh -c 'sbatch --parsable --ckpt <plain.sh'
gives "--ckpt-requeue=no" 1 1 0 'its output is appended to the file' sbatch --parsable --ckpt-requeue=no plain.sh
gives "SBATCH_CKPT_REQUEUE=no" 1 1 0 'its output is appended to the file' env SBATCH_CKPT_REQUEUE=no sbatch --parsable plain.sh
gives "--ckpt=off" 1 0 0 '' sbatch --parsable --ckpt=off plain.sh
no_drained
done_testing
