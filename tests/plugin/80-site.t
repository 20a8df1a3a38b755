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

site bad kep=3 keep=0 every=500 default=maybe root=ckpt/%q
text=$(step --ckpt)
for wanted in 'kep: no such argument' 'keep: 0: not between' 'every: 500: ' 'default: maybe: on or off' 'root: ckpt/%q: an absolute'; do
	tap_like "$text" "ckpt: plugstack.conf: $wanted" "a bad argument is named"
done
tap_like "$text" 'SLURM_CKPT_KEEP=3' "... the default holds"
tap_like "$text" 'SLURM_CKPT_EVERY=1800s' "... and the other one"
tap_is "$(step | grep -c '^SLURM_CKPT')" 0 "... and without --ckpt it is off"
no_drained
done_testing
