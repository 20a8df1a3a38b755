#!/bin/bash
# A launch that failed is no start: Slurm counts it as a restart, but no script has run, and there is
# nothing to resume.
. "$(dirname "$0")/plugin.sh"

# launch_fails JOB: release the held job, and requeue it while a node's prolog runs for it. From a launch
# that fails by itself it differs in that no node is drained, which other tests would notice.
launch_fails() {
	local job=$1 hook=$MINICLUSTER_DIR/etc/prolog.d/$1
	cat >"$hook" <<-END
	#!/bin/bash
	touch "$CASE/began-$job"
	for i in {1..600}; do [ ! -e "$CASE/go-$job" ] || exit 0; sleep 0.1; done
	END
	chmod +x "$hook"
	as_user scontrol release "$job"
	poll 60 test -e "$CASE/began-$job" || tap_diag "no prolog began for job $job"
	as_user scontrol requeue "$job"
	touch "$CASE/go-$job"
	rm "$hook"
}

tokens() { find "$CASE/runs" -maxdepth 1 -name '.submitted-*' | wc -l; }

new_case failed
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-launch -t 5 --ckpt-dir=runs
echo "script ${SLURM_RESTART_COUNT:-0}"
srun -n1 --ckpt-dir=elsewhere --ckpt-name=$SLURM_JOB_ID bash -c 'echo "a step in a place of its own"'
srun -n1 bash -c '[ "$SLURM_RESTART_COUNT" != 1 ] || exit 75; echo "the end"'
END
array=$(submit_kept job.sh -H --array=3 -o out-%A_%a)
job=$(submit_kept job.sh -H -o out-%j)
tap_is "$(tokens)" 2 "each sbatch leaves a token where the runs will lie"
launch_fails "$job"
launch_fails "$array"	# a single element has the array's id
tap_is "$(cd "$CASE" && compgen -G 'out-*')" '' "(no script has run)"
wait_restart "$job" 2 120
wait_restart "$array" 2 120
wait_end "$job" 120
wait_end "$array" 120
for out in "out-$job" "out-${array}_3"; do
	tap_is "$(count_lines '^ckpt: .*has run before' "$out").$(count_lines '^script 1' "$out")" 0.1 \
		"after a launch that failed it starts ($out)"
	tap_is "$(count_lines '^a step in a place' "$out")" 2 "... and so do its steps, in directories of their own"
	tap_is "$(count_lines '^script 2' "$out").$(count_lines '^the end' "$out")" 1.1 "... is requeued, resumes and completes"
done
tap_is "$(tokens)" 1 "the job has taken its token away"

# What has once begun is not begun again.
new_case lost
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-launch -o out-%j -t 5 --ckpt-dir=runs
rm -r runs/mini-*
exit 1
END
job=$(submit_kept job.sh)
wait_end "$job" 60
as_user scontrol requeue "$job"
wait_restart "$job" 1 120
wait_end "$job" 120
tap_like "$(cat "$CASE/out-$job")" "^ckpt: this job has run before, $(run_dir "$job") is missing" \
	"a script has run, and its run is lost: refused"

# A submission that Slurm refuses leaves nothing.
new_case refused
write job.sh <<'END'
#!/bin/bash
echo ran
END
as_user sbatch --ckpt-dir=runs -p nowhere job.sh >"$CASE/said" 2>&1
tap_is "$? $(tokens)" '1 0' "a submission that Slurm refuses leaves no token"
no_drained
done_testing
