#!/bin/bash
# plugstack arguments: the site's defaults, and bad ones that stop nobody. The clients of this test
# have a plugstack.conf of their own; slurmstepd keeps the cluster's.
. "$(dirname "$0")/plugin.sh"

plugin=$(sed -n 's/^[^#]*[[:space:]]\([^[:space:]]*ckpt\.so\).*/\1/p' "$MINICLUSTER_DIR"/etc/plugstack.conf.d/*.conf | head -1)
[ -n "$plugin" ] || tap_skip_all "no line with ckpt.so in $MINICLUSTER_DIR/etc/plugstack.conf.d"

# site CASE ARGUMENTS: $conf is a configuration whose plugin has these arguments.
site() {
	new_case "$1"
	shift
	mkdir "$CASE/client"
	conf=$CASE/client/slurm.conf
	sed "s,^PlugStackConfig=.*,PlugStackConfig=$CASE/client/plugstack.conf," "$SLURM_CONF" >"$conf"
	echo "optional $plugin $*" >"$CASE/client/plugstack.conf"
}
step() { said env SLURM_CONF="$conf" timeout 60 srun -J ckpt-site -n1 -t 1 "$@" env; }

site defaults default=on keep=5 every=2h "root=$MINICLUSTER_DIR/shared/ckptuser/plugin/80-site/defaults/%u/%U-%x"
text=$(step)
tap_like "$text" 'SLURM_CKPT_KEEP=5' "default=on: a step without --ckpt has the site's keep"
tap_like "$text" 'SLURM_CKPT_EVERY=7200s' "... and every"
tap_like "$text" "SLURM_CKPT_DIR=$CASE/ckptuser/$(id -u ckptuser)-ckpt-site/mini-" "... and root, expanded"
tap_is "$(stat -c %a "$CASE/ckptuser")" 700 "... which is made for the user alone"
tap_like "$(step --ckpt-keep=6)" 'SLURM_CKPT_KEEP=6' "the command line goes first"
tap_like "$(said env SLURM_CONF="$conf" SRUN_CKPT_KEEP=7 timeout 60 srun -J ckpt-site -n1 -t 1 env)" 'SLURM_CKPT_KEEP=7' \
	"... and the environment"
tap_is "$(step --ckpt=off | grep -c '^SLURM_CKPT')" 0 "--ckpt=off is off"
tap_like "$(step --ckpt-dir=mine)" "SLURM_CKPT_DIR=$CASE/mine/mini-" "--ckpt-dir goes before root"
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-site -o out-%j -t 1
echo "keep=$SLURM_CKPT_KEEP $(srun -n1 env | grep -c '^SLURM_CKPT_KEEP')"
END
job=$(as_user env SLURM_CONF="$conf" sbatch --parsable job.sh 2>"$CASE/notices")
off=$(as_user env SLURM_CONF="$conf" sbatch --parsable --ckpt=off job.sh 2>/dev/null)
printf '%s\n' "$job" "$off" >>"$JOBS_FILE"
wait_end "$job" 120
wait_end "$off" 120
tap_like "$(cat "$CASE/out-$job")" '^keep=[0-9]+ 1$' "a batch job without --ckpt has it on"
tap_is "$(job_field "$job" Requeue)" 1 "... may be requeued"
tap_like "$(cat "$CASE/notices")" 'ckpt: the job may be requeued, its output is appended to the file' "... and a notice says so"
tap_is "$(cat "$CASE/out-$off")" "keep= 0" "a batch job with --ckpt=off has nothing, nor have its steps"

write het.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-site -o out-%j -t 1 -n1
#SBATCH hetjob
#SBATCH -n1
echo "keep=$SLURM_CKPT_KEEP $(srun --het-group=0,1 env | grep -c '^SLURM_CKPT_KEEP')"
END
job=$(as_user env SLURM_CONF="$conf" sbatch --parsable het.sh 2>"$CASE/notices")
echo "$job" >>"$JOBS_FILE"
wait_end "$job" 120
tap_is "$(cat "$CASE/out-$job")" "keep= 0" "a heterogeneous job is left alone"

# The batch host has no plugin, that of the step has one.
new_case bare
mkdir "$CASE/client"
sed "s,^PlugStackConfig=.*,PlugStackConfig=/dev/null," "$SLURM_CONF" >"$CASE/client/slurm.conf"
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-site -o out-%j -t 2 -n2 --ckpt-dir=runs
for name in ${!SLURM_CKPT_@}; do unset $name; done
SLURM_CONF=$PWD/client/slurm.conf srun sh -c 'echo "ran on $SLURM_JOB_NODELIST"'
END
job=$(submit_kept job.sh)
wait_end "$job" 120
node=$(sed -n 's/^ran on //p' "$CASE/out-$job" | head -n 1)
tap_is "$(count_lines '^ran' "out-$job")" 2 "a step whose srun has no plugin runs"
tap_is "$(count_lines "^ckpt: warning: Slurm's ckpt plugin was not loaded on node ${node%%[\[,]*}" "out-$job")" 1 \
	"... one line names the node, and says that the job is not requeued"

site bad kep=3 keep=0 every=500 default=maybe root=ckpt/%q
text=$(step --ckpt)
for wanted in 'kep: no such argument' 'keep: 0: not between' 'every: 500: ' 'default: maybe: on or off' 'root: ckpt/%q: an absolute'; do
	tap_like "$text" "ckpt: plugstack.conf: $wanted" "a bad argument is named"
done
tap_like "$text" 'SLURM_CKPT_KEEP=3' "... the default holds"
tap_like "$text" 'SLURM_CKPT_EVERY=1800s' "... and the other one"
tap_is "$(step | grep -c '^SLURM_CKPT')" 0 "... and without --ckpt it is off"

# Below a folder in which everybody may make entries, others may have been there first.
site foreign default=on "root=$MINICLUSTER_DIR/shared/ckptuser/plugin/80-site/foreign/scratch/%u/ckpt"
install -d -m 1777 "$CASE/scratch"
install -d -o 4242 "$CASE/scratch/ckptuser"
text=$(step)
tap_like "$text" "ckpt: $CASE/scratch/ckptuser: belongs to user 4242, not to you" "a directory of another below root= is refused, and named"
tap_is "$(grep -c '^SLURM_CKPT_DIR' <<<"$text")" 0 "... the task does not run"
rmdir "$CASE/scratch/ckptuser"
tap_like "$(step)" "SLURM_CKPT_DIR=$CASE/scratch/ckptuser/ckpt/mini-" "... and made when it is not there"
install -d -m 1777 "$CASE/open"
install -d -o 4242 "$CASE/open/planted"
install -d -o ckptuser "$CASE/open/mixed"
for run in planted mixed; do
	cat >"$CASE/open/$run/run.json" <<-END
	{"schema_version": 1, "run_id": "0123456789abcdef0123456789abcdef", "run": "$run",
	"job": {"cluster": "mini", "id": "1", "submit_time": null},
	"created": "2020-01-01T00:00:00Z", "committed": true, "complete_step": null}
	END
done
install -d -o 4242 "$CASE/open/mixed/step-0000000007.g1"
tap_like "$(step --ckpt-dir="$CASE/open" --ckpt-name=planted)" "ckpt: $CASE/open/planted: belongs to user 4242" \
	"a run that another has planted is refused"
tap_like "$(step --ckpt-dir="$CASE/open" --ckpt-name=mixed)" "ckpt: $CASE/open/mixed/step-0000000007.g1: belongs to user 4242" \
	"... and so is a checkpoint"

# Into a job from outside: a default is no wish for a run beside the job's.
site visit default=on
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-site -o out-%j -t 5 -n 2 --ckpt-dir=runs
touch began; for i in {1..600}; do [ ! -e go ] || exit 0; sleep 0.1; done
END
job=$(as_user sbatch --parsable job.sh 2>"$CASE/notices")
echo "$job" >>"$JOBS_FILE"
poll 60 test -e "$CASE/began"
visit() { said env SLURM_CONF="$conf" timeout 60 srun --jobid="$job" --overlap -N1 -n1 "$@" env; }
text=$(visit)
tap_like "$text" "SLURM_JOB_ID=$job" "srun --jobid with default=on: runs in the job"
tap_is "$(grep -cE '^SLURM_CKPT_(DIR|JOB)' <<<"$text").$(cd "$CASE" && compgen -G 'ckpt')" 0. "... without a run of its own"
text=$(visit --ckpt-dir=runs)
tap_like "$text" "SLURM_CKPT_DIR=$CASE/runs/mini-$job" "... and with --ckpt-dir in the job's run"
tap_like "$text" "SLURM_CLUSTER_NAME=mini" "... which the library knows by the cluster's name"
as_user touch go
wait_end "$job" 60
no_drained
done_testing
