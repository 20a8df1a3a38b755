#!/bin/bash
# Who opens a run is the one that has it: several steps or tasks that open the same run, and a container
# that does not see it, are refused at once.
. "$(dirname "$0")/train.sh"

prefix=$MINICLUSTER_DIR/opt
command -v cc >/dev/null || tap_skip_all "no C compiler"

new_case build
cc -o "${CASE%/*}/alone" "$CLUSTER_DIR/alone.c" -I"$prefix/include" -L"$prefix/lib" -lckpt -Wl,-rpath,"$prefix/lib"
tap_ok $? "(a program without MPI is compiled)"

# new_program NAME: new_case with ./alone.
new_program() {
	new_case "$1"
	cp "$MINICLUSTER_DIR/shared/ckptuser/$TEST_NAME/alone" "$CASE/"
}
lines() { cat "$CASE"/out* 2>/dev/null | grep -cE -- "$1"; }	# REGEX
lines_are() { [ "$(lines "$1")" = "$2" ]; }			# REGEX COUNT

new_program steps
write_job job.sh -N2 -n4 --ckpt-name=run -- \
	'for i in 1 2 3 4; do srun -N1 -n1 --exact ./alone & done; wait' 'echo "after ${SLURM_RESTART_COUNT:-0}"'
job=$(submit job.sh)
poll 60 lines_are '^ckpt: .*steps that run at the same time need a run each: srun --ckpt-name=<name>' 3
tap_is "$(lines 'need a run each: srun --ckpt-name=<name>')" 3 "four steps at once: three are refused, by name" || tap_diag "$(tail -n 20 "$CASE/out")"
tap_is "$(lines '^training from step 0')" 1 "... before they train"
as_user touch go
wait_end "$job" 60
tap_is "$(lines '^finished').$(outcome "$job")" '1.COMPLETED 0:0 0' "... and the first one is not disturbed"

new_program tasks
write_job job.sh -N2 -n2 --ckpt-name=run -- 'srun -N2 -n2 ./alone'
job=$(submit job.sh)
wait_end "$job" 90
tap_is "$(job_field "$job" JobState) $(job_field "$job" Restarts)" 'FAILED 0' "two tasks, each for itself: the job fails, and is not requeued"
tap_like "$(grep 'has opened it for this step' "$CASE/out")" 'process [0-9]+ on n[0-9]+ has opened it for this step, and this is process [0-9]+ on n[0-9]+: one task is to open' \
	"... both hosts are named"
tap_like "$(cat "$CASE/out")" 'ckpt: not requeued: several tasks have opened the run, on n[0-9]+ and n[0-9]+' "... and that is why"

new_program container
cat >"$CASE/contain" <<'END'
#!/bin/bash
[ "$SLURM_RESTART_COUNT" ] || exec "$@"
exec unshare -rm sh -c 'mount -t tmpfs none "$SLURM_CKPT_DIR" && exec "$@"' sh "$@"
END
chmod 755 "$CASE/contain"
write_job job.sh -N1 -n1 --ckpt-name=run -- 'srun ./contain ./alone'
job=$(submit job.sh)
wait_file '^training from step 0' out 60
as_user scancel --signal=USR1 "$job"
wait_restart "$job" 1 60
wait_end "$job" 60
tap_is "$(job_field "$job" JobState) $(job_field "$job" Restarts)" 'FAILED 1' "a second start in a container without the run: refused"
tap_like "$(cat "$CASE/out")" "ckpt/run: on n[0-9]+ there is no run.json, where this job's run, [0-9a-f]{32}, should be: is the file system mounted there, and in the container" \
	"... and told why"
tap_is "$(lines '^training')" 1 "... before it trains"

# The mount is missing in one rank's container.
new_run rank
cat >"$CASE/blind" <<'END'
#!/bin/bash
[ "$SLURM_PROCID" != 1 ] || export SLURM_CKPT_IO_FAULT=open:run.json:errno=ENOENT
exec "$@"
END
chmod 755 "$CASE/blind"
write_job job.sh -N1 -n2 -- "$(train | sed 's,\./train,./blind ./train,')"
job=$(submit job.sh)
wait_end "$job" 60
tap_like "$(cat "$CASE/out")" "^ckpt: cannot open: rank 1: .*: on n[0-9]+ there is no run.json" "one rank does not see the run: refused, and the rank named"
tap_is "$(lines '^step ')" 0 "... before it trains"
done_testing
