#!/bin/bash
# Requeue at srun's end: when there is work left, and only then; no line after srun runs meanwhile.
. "$(dirname "$0")/plugin.sh"

# job NAME SBATCH-ARGUMENTS: a script with two lines around srun.
job_script() {
	write job.sh <<-END
	#!/bin/bash
	#SBATCH -J ckpt-requeue -o out-%j --ckpt --ckpt-dir=runs $*
	echo "before \${SLURM_RESTART_COUNT:-0}"
	srun ./program
	echo "after \${SLURM_RESTART_COUNT:-0}: \$?"
	END
}

# All cases run at the same time: first they are submitted, then looked at.
declare -A jobs cases
begin() {	# NAME SBATCH-ARGUMENTS; the program is on standard input
	local name=$1
	shift
	new_case "$name"
	cases[$name]=$CASE
	write program
	write_pretend
	job_script "$@"
	jobs[$name]=$(submit_kept job.sh)
}
at() { CASE=${cases[$1]} job=${jobs[$1]} out=out-${jobs[$1]}; }

begin twice -t 5 <<'END'
#!/bin/bash
[ "$SLURM_RESTART_COUNT" ] || exit 75
until [ -e go ]; do sleep 0.1; done
END
after=$(as_user sbatch --parsable -J ckpt-requeue -o /dev/null -d "afterok:${jobs[twice]}" --wrap true)
echo "$after" >>"$JOBS_FILE"

begin limit -t 1 <<'END'
#!/bin/bash
[ "$SLURM_RESTART_COUNT" ] || exec sleep 300
END

begin mark -t 5 <<'END'
#!/bin/bash
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
./pretend open; ./pretend save 40; ./pretend mark requeue 40 "signal 15"
exit 0
END

begin stop -t 5 <<'END'
#!/bin/bash
./pretend open; ./pretend save 41; ./pretend mark stop 41 "ckpt stop"
exit 75
END

begin complete -t 5 <<'END'
#!/bin/bash
./pretend open; ./pretend save 42; ./pretend complete 42
exit 75
END

begin most -t 5 --ckpt-requeue=1 <<'END'
#!/bin/bash
exit 75
END

begin no -t 5 --ckpt-requeue=no <<'END'
#!/bin/bash
exit 75
END

begin forbidden -t 5 --no-requeue <<'END'
#!/bin/bash
exit 75
END

begin crash -t 5 <<'END'
#!/bin/bash
./pretend open; ./pretend save 43
kill -SEGV $$
END

begin supervised -t 5 <<'END'
#!/bin/bash
exit 75
END
sed -i 's/^srun/SLURM_CKPT_SUPERVISED=1 srun/' "$CASE/job.sh"
slurm scancel "${jobs[supervised]}"
jobs[supervised]=$(submit_kept job.sh)

begin cancel -t 5 <<'END'
#!/bin/bash
trap 'exit 75' TERM
echo "running"
while :; do sleep 0.1; done
END

# Here srun is the batch script's process and so outlives the cancel long enough to decide.
begin exec-cancel -t 5 <<'END'
#!/bin/bash
trap 'exit 75' TERM
echo "running"
while :; do sleep 0.1; done
END
slurm scancel "${jobs[exec-cancel]}"
sed -i 's/^srun/exec srun/' "$CASE/job.sh"
jobs[exec-cancel]=$(submit_kept job.sh)

begin held -t 5 --comment=ticket-5 <<'END'
#!/bin/bash
./pretend open; ./pretend save 44; ./pretend mark hold 44 "no progress"
exit 1
END

begin array -t 5 --array=1-3 <<'END'
#!/bin/bash
echo "element $SLURM_ARRAY_TASK_ID, start ${SLURM_RESTART_COUNT:-0}"
[ "$SLURM_ARRAY_TASK_ID.$SLURM_RESTART_COUNT" != 2. ] || exit 75
sleep 4
END

for name in cancel exec-cancel; do
	at $name
	wait_file running "$out" 60
	slurm scancel "$job"
	wait_end "$job" 120
	tap_is "$(job_field "$job" JobState).$(job_field "$job" Restarts)" CANCELLED.0 \
		"$name: a cancelled job stays cancelled, though the program exits 75"
done
wait_file '^ckpt: not requeued: the job was cancelled$' "$out" 10
tap_ok $? "... one line says so"

at twice
wait_restart "$job" 1 120
tap_ok $? "exit code 75: the job runs again"
tap_is "$(job_field "$after" JobState)" PENDING "an afterok job has not started meanwhile"
as_user touch go
wait_end "$job" 120
tap_is "$(job_field "$job" JobState)" COMPLETED "... and completes"
tap_is "$(count_lines '^ckpt: requeueing: exit code 75' "$out")" 1 "... one line says why it was requeued"
tap_is "$(count_lines '^before [01]$' "$out")" 2 "... the output of both starts is kept"
tap_is "$(count_lines '^after 0' "$out")" 0 "... no line after srun ran in the first start"
tap_is "$(count_lines '^after 1: 0$' "$out")" 1 "... but in the last one"
wait_end "$after" 120
tap_is "$(job_field "$after" JobState)" COMPLETED "... then the afterok job runs"
tap_ok "[ $(job_field "$after" StartTime | date -f - +%s) -ge $(job_field "$job" EndTime | date -f - +%s) ]" "... after it"

at mark
wait_restart "$job" 1 120
tap_ok $? "the library's mark: requeued, whatever the exit code"
tap_is "$(count_lines '^ckpt: requeueing: signal 15, saved at step 40' "$out")" 1 "... with its reason"

at stop
wait_end "$job" 120
tap_is "$(job_field "$job" JobState).$(job_field "$job" Restarts)" COMPLETED.0 "told to stop: not requeued"
tap_is "$(count_lines '^ckpt: not requeued: ckpt stop, saved at step 41' "$out")" 1 "... one line says so"
tap_is "$(count_lines '^after 0: 75' "$out")" 1 "... and the script goes on"

at complete
wait_end "$job" 120
tap_is "$(job_field "$job" Restarts)" 0 "a complete run: not requeued"

at no
wait_end "$job" 120
tap_is "$(job_field "$job" Restarts)" 0 "--ckpt-requeue=no: not requeued"
tap_is "$(count_lines '^ckpt: not requeued: --ckpt-requeue=no$' "$out")" 1 "... one line says so"

at forbidden
wait_end "$job" 120
tap_is "$(job_field "$job" Restarts)" 0 "--no-requeue: not requeued"
tap_is "$(count_lines 'not requeued: the job was submitted with --no-requeue$' "$out")" 1 "... one line says so"

at crash
wait_end "$job" 120
tap_is "$(job_field "$job" Restarts)" 0 "a crash: not requeued"
tap_is "$(count_lines "not requeued: exit code 139; 'scontrol requeue' resumes the job" "$out")" 1 "... one line says what to do"

at supervised
wait_end "$job" 120
tap_is "$(job_field "$job" Restarts).$(count_lines requeu "$out")" 0.0 "SLURM_CKPT_SUPERVISED=1: not a word"

at held
wait_field "$job" Restarts 1 60
tap_ok $? "no progress: requeued, and held"
tap_is "$(slurm scontrol show job "$job" | sed -n 's/^ *Comment=\(.*[^ ]\) *$/\1/p')" "ticket-5; ckpt: no progress" \
	"... with the reason behind the user's own comment"
slurm scancel "$job"

at array
wait_restart "${job}_2" 1 120
tap_ok $? "an array's element is requeued"
for element in 1 2 3; do wait_end "${job}_$element" 60; done
for element in 1 3; do tap_is "$(job_field "${job}_$element" Restarts)" 0 "... alone: element $element is not"; done

at most
wait_restart "$job" 1 120
tap_ok $? "--ckpt-requeue=1: requeued once"
wait_end "$job" 120
tap_is "$(job_field "$job" Restarts)" 1 "... and not again"
tap_is "$(count_lines 'not requeued: it has run 2 times, --ckpt-requeue=1$' "$out")" 1 "... one line says so"

at limit
wait_restart "$job" 1 150
tap_ok $? "the time limit: requeued, whatever the program does"
tap_is "$(count_lines '^ckpt: requeueing: time limit$' "$out")" 1 "... one line says so"
wait_end "$job" 120
tap_is "$(job_field "$job" JobState)" COMPLETED "... and the second start completes"
tap_is "$(count_lines '^after 0' "$out")" 0 "... no line after srun ran in the first"
no_drained
done_testing
