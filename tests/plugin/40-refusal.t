#!/bin/bash
# What must not run does not: the task ends with 78 and one line, the node stays as it is.
. "$(dirname "$0")/plugin.sh"

# A fresh start in place of a lost run.
new_case missing
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-refusal -o out-%j -t 5 --ckpt --ckpt-dir=runs
echo "script ${SLURM_RESTART_COUNT:-0}"
srun bash -c '[ "$SLURM_RESTART_COUNT" ] || { mkdir away; mv runs away; exit 75; }'
END
job=$(submit_kept job.sh)
wait_restart "$job" 1 120
wait_end "$job" 120
tap_is "$(job_field "$job" JobState).$(job_field "$job" ExitCode)" FAILED.78:0 "a restart without its run fails with 78"
tap_is "$(count_lines "^ckpt: this job has run before, $(run_dir "$job") is missing: is the file system mounted\?" "out-$job")" 1 \
	"... one line says so"
tap_is "$(count_lines '^script 1' "out-$job")" 0 "... and the script has not begun"
as_user mkdir -p "$(run_dir "$job")"
as_user scontrol requeue "$job"
wait_restart "$job" 2 120
wait_end "$job" 120
tap_is "$(job_field "$job" JobState)" COMPLETED "the empty directory is a wish to start over"
as_user scontrol requeue "$job"
wait_restart "$job" 3 120
wait_end "$job" 120
tap_is "$(job_field "$job" JobState)" COMPLETED "a run that is there is no matter"

# A directory that is another one at each start. The script does not look at srun's exit code.
new_case moved
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-refusal -o out-%j -t 5 --ckpt
trap 'echo "term"; exit 0' TERM
srun --ckpt-dir="runs/start-${SLURM_RESTART_COUNT:-0}" bash -c '[ "$SLURM_RESTART_COUNT" ] || exit 75'
echo "after ${SLURM_RESTART_COUNT:-0}"
END
job=$(submit_kept job.sh)
wait_restart "$job" 1 120
wait_end "$job" 120
tap_is "$(job_field "$job" JobState).$(job_field "$job" ExitCode)" FAILED.78:0 "another --ckpt-dir after a restart: the job fails with 78"
tap_is "$(count_lines "^ckpt: this job has run before, $CASE/runs/start-1/mini-$job is missing: its run is $CASE/runs/start-0/mini-$job; --ckpt-dir" "out-$job")" 1 \
	"... one line names both directories"
tap_is "$(count_lines '^ckpt: ending the job' "out-$job")" 1 "... and one says that the job is ended"
tap_is "$(count_lines '^after' "out-$job")" 0 "... no line after srun ran"

# Another job with the same id, as after slurmctld has lost its state.
new_case other
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-refusal -o out-%j -t 5 --ckpt --ckpt-dir=runs
echo ran
END
job=$(submit_kept job.sh -H)
as_user mkdir -p "$(run_dir "$job")"
cat >"$(run_dir "$job")/run.json" <<-END
{"schema_version": 1, "run_id": "0123456789abcdef0123456789abcdef", "run": "mini-$job",
"job": {"cluster": "mini", "id": "$job", "submit_time": "2020-01-01T00:00:00Z"},
"created": "2020-01-01T00:00:00Z", "committed": true, "complete_step": null}
END
as_user scontrol release "$job"
wait_end "$job" 120
tap_is "$(job_field "$job" ExitCode)" 78:0 "the run of another job with this id is not continued"
tap_like "$(cat "$CASE/out-$job")" "^ckpt: .*: belongs to another job $job, submitted 2020-01-01T00:00:00Z" "... one line says so"

# srun hands its refusal on to the tasks, one of which says it.
new_case srun
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-refusal -o out-%j -t 5 -N 2 -n 4
: >file
srun --ckpt-dir=file ./program
echo "after $?"
srun --ckpt-dir=/proc/nowhere ./program
echo "after $?"
srun ./program
END
write program <<'END'
#!/bin/bash
echo ran
END
job=$(submit_kept job.sh)
wait_end "$job" 120
tap_is "$(count_lines '^after 78$' "out-$job")" 2 "srun refuses with 78"
tap_is "$(count_lines "^ckpt: $CASE/file/mini-$job.*: Not a directory" "out-$job")" 1 "... one line of four tasks says why"
tap_is "$(count_lines '^ckpt: /proc/nowhere' "out-$job")" 1 "... and so the second time"
tap_is "$(count_lines 'requeu' "out-$job")" 0 "... and requeueing is no matter"
tap_is "$(count_lines '^ran' "out-$job")" 4 "... and the step without --ckpt runs"

# Who has opened the run cannot be asked: another user's job, where jobs are private; another cluster's.
new_case private
foreign=$(slurm sbatch --parsable -D / -J ckpt-refusal -o /dev/null --wrap 'sleep 300' 2>/dev/null)
echo "$foreign" >>"$JOBS_FILE"
write_pretend
begin() { said timeout 60 srun -J ckpt-refusal -n1 -t 5 --ckpt-dir=runs "$@"; }
for claim in "mini $foreign hidden" "maxi 7 cluster"; do
	read -r cluster id name <<<"$claim"
	begin --ckpt-name="$name" ./pretend open >>"$CASE/notices"
	sed -i "s/\"cluster\": \"mini\", \"id\": \"[0-9]*\"/\"cluster\": \"$cluster\", \"id\": \"$id\"/" "$CASE/runs/$name/.gen-1/claim.json"
	chown -R root "$CASE/runs/$name/.gen-1"
	text=$(begin --ckpt-name="$name" echo ran)
	tap_is "$?.$(grep -c '^ran' <<<"$text")" 78.0 "$name: who cannot be asked is not taken for gone"
	tap_like "$text" "job $id of cluster $cluster has opened it on n[0-9]+ and not closed it" "... and is named"
	text=$(begin --ckpt-name="$name" --ckpt-takeover echo ran)
	tap_is "$(grep '^ran' <<<"$text")" ran "... --ckpt-takeover takes over" || tap_diag "$text"
done
slurm scancel "$foreign"

# Values that have not come by the client's option callback.
new_case forged
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-refusal -o out-%j -t 5 --ckpt-dir=runs
echo "script runs"
END
while read -r option value wanted; do
	job=$(as_user env "_SLURM_SPANK_OPTION_ckpt_$option=$value" sbatch --parsable job.sh 2>>"$CASE/notices")
	echo "$job" >>"$JOBS_FILE"
	wait_end "$job" 120
	tap_is "$(job_field "$job" JobState).$(job_field "$job" ExitCode)" FAILED.78:0 "forged $option: the job fails with 78"
	tap_is "$(grep -c "^ckpt: $wanted" "$CASE/out-$job").$(count_lines '^script runs' "out-$job")" 1.0 "... one line says why"
done <<'END'
ckpt_keep 0 --ckpt-keep: 0: not between
ckpt_every 500 --ckpt-every: 500:
ckpt_name ../../x --ckpt-name: ../../x:
ckpt_margin -1 --ckpt-margin: -1:
ckpt_requeue x --ckpt-requeue: x:
END
write step.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-refusal -o out-%j -t 5 -n 2 --ckpt-dir=runs
env _SLURM_SPANK_OPTION_ckpt_ckpt_keep=0 srun hostname
echo "after $?"
END
job=$(submit_kept step.sh)
wait_end "$job" 120
tap_is "$(count_lines '^after 78' "out-$job")" 1 "forged for a step: it fails with 78"
tap_is "$(count_lines '^ckpt: --ckpt-keep: 0: not between' "out-$job")" 1 "... one line of two tasks says why"
tap_is "$(count_lines 'requeu' "out-$job")" 0 "... and requeueing is no matter"
job=$(as_user env SLURM_CKPT_REFUSED="no" sbatch --parsable -J ckpt-refusal -o out-%j -t 5 --wrap 'srun -n1 echo ran')
echo "$job" >>"$JOBS_FILE"
wait_end "$job" 120
tap_is "$(count_lines '^ran$' "out-$job")" 1 "a refusal without our seal is none"

tap_is "$(slurm scontrol show nodes | grep -c 'NodeName=')" "$(slurm scontrol show nodes | grep -c 'State=[A-Z*+]* ')" "scontrol shows the nodes"
tap_is "$(slurm scontrol show nodes | grep -c DRAIN)" 0 "... and none is drained"
no_drained
done_testing
