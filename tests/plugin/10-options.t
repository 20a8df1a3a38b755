#!/bin/bash
# Options: bad values are refused in one line and nothing is submitted; who overrides whom.
. "$(dirname "$0")/plugin.sh"

new_case bad
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-options -o out-%j -t 1
END
write forced.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-options -o out-%j -t 1 --ckpt-keep=0
END

# refused NAME WANTED COMMAND...: one line with these words, failure, and no job.
refused() {
	local name=$1 wanted=$2 text status
	shift 2
	text=$(said "$@")
	status=$?
	[ $status != 0 ]
	tap_ok $? "$name: refused"
	tap_is "$(grep -c . <<<"$text")" 1 "$name: in one line" || tap_diag "$text"
	tap_like "$text" "$wanted" "$name: says what was wanted"
}

while read -r option wanted; do
	refused "$option" "$wanted" sbatch "$option" job.sh
done <<'END'
--ckpt=banana error: ckpt: --ckpt: banana: on or off is wanted
--ckpt-keep=0 error: ckpt: --ckpt-keep: 0: not between 1 and 10000
--ckpt-every=banana --ckpt-every: banana: not a duration such as
--ckpt-every=500 --ckpt-every: 500: .*500s, 500min or 500steps
--ckpt-name=../x --ckpt-name: \.\./x: a name does not begin with '\.'
--ckpt-name=a/b --ckpt-name: a/b: .*a name has only letters
--ckpt-requeue=-1 --ckpt-requeue: -1: 'no', or a number from 1
--ckpt-margin=60 --ckpt-margin: 60: .*60s or 60min
--ckpt-staging=on --ckpt-staging: on: not a size such as .*(or auto, or off)
--ckpt-staging=512 --ckpt-staging: 512: a number needs a unit: 512M or 512G
--ckpt-dir= --ckpt-dir: empty: a directory is wanted
END
refused "a script's line" '--ckpt-keep: 0: not between' sbatch forced.sh
refused "the environment" 'ckpt: SBATCH_CKPT_KEEP: 0: not between' env SBATCH_CKPT_KEEP=0 sbatch --ckpt job.sh
refused "srun's environment" 'ckpt: SRUN_CKPT_KEEP: 0: not between' env SRUN_CKPT_KEEP=0 timeout 20 srun -n1 --ckpt true
refused "srun" '--ckpt-keep: 0: not between' timeout 20 srun -n1 --ckpt-keep=0 true
refused "salloc" '--ckpt-every: 500: ' timeout 20 salloc -n1 --ckpt-every=500 true
tap_like "$(said sbatch --ckpt-banana=1 job.sh)" "unrecognized option '--ckpt-banana" \
	"an option that does nothing is none"
tap_is "$(slurm squeue -h -n ckpt-options | wc -l)" 0 "nothing was submitted"

for command in sbatch srun salloc; do
	tap_like "$(said $command --help)" '--ckpt=\[on\|off\] .*\[ckpt\].*--ckpt-margin=' "$command --help shows the options"
done

new_case precedence
write job.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-options -o out-%j -t 1 --ckpt-dir=runs
echo "keep=$SLURM_CKPT_KEEP every=$SLURM_CKPT_EVERY margin=$SLURM_CKPT_MARGIN dir=$SLURM_CKPT_DIR"
END
write keep.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-options -o out-%j -t 1 --ckpt-dir=runs --ckpt-keep=4
echo "keep=$SLURM_CKPT_KEEP every=$SLURM_CKPT_EVERY margin=$SLURM_CKPT_MARGIN dir=$SLURM_CKPT_DIR"
END
write plain.sh <<'END'
#!/bin/bash
#SBATCH -J ckpt-options -o out-%j -t 1
echo "keep=$SLURM_CKPT_KEEP"
END

# gives NAME WANTED COMMAND...: the job that COMMAND submits prints such a line.
gives() {
	local name=$1 wanted=$2 job
	shift 2
	job=$(as_user "$@" 2>>"$CASE/notices") || { tap_ok 1 "$name: submitted"; return; }
	echo "$job" >>"$JOBS_FILE"
	wait_file '^keep=' "out-$job" 60
	tap_like "$(cat "$CASE/out-$job")" "$wanted" "$name"
}

gives "defaults" "^keep=3 every=1800s margin=60 dir=$CASE/runs/mini-" sbatch --parsable job.sh
gives "values are normalised" "^keep=3 every=7200s margin=300 " \
	sbatch --parsable --ckpt-every=2h --ckpt-margin=5min job.sh
gives "steps" "^keep=3 every=500steps " sbatch --parsable --ckpt-every=500steps job.sh
gives "the script's line" '^keep=4 ' sbatch --parsable keep.sh
gives "the environment over the script" '^keep=5 ' env SBATCH_CKPT_KEEP=5 sbatch --parsable keep.sh
gives "the command line over both" '^keep=6 ' env SBATCH_CKPT_KEEP=5 sbatch --parsable --ckpt-keep=6 keep.sh
gives "the command line, even when it equals the environment" '^keep=5 ' \
	env SBATCH_CKPT_KEEP=5 sbatch --parsable --ckpt-keep=5 keep.sh
gives "salloc's default is not sbatch's" '^keep=3 ' env SALLOC_CKPT_KEEP=5 sbatch --parsable job.sh
gives "SBATCH_CKPT=on is --ckpt" "^keep=3$" env SBATCH_CKPT=on SBATCH_CKPT_DIR=runs sbatch --parsable plain.sh
gives "SBATCH_CKPT=off is --ckpt=off" "^keep= every=" env SBATCH_CKPT=off sbatch --parsable job.sh
gives "another default alone switches nothing on" "^keep=$" env SBATCH_CKPT_KEEP=5 sbatch --parsable plain.sh
gives "a bad default hurts no job without --ckpt" "^keep=$" env SBATCH_CKPT_KEEP=0 sbatch --parsable plain.sh
gives "a good option over a bad default" "^keep=6 " env SBATCH_CKPT_KEEP=0 sbatch --parsable --ckpt-keep=6 job.sh
gives "--export=NONE" "^keep=6 every=1800s margin=60 dir=$CASE/runs/mini-" \
	sbatch --parsable --export=NONE --ckpt-keep=6 job.sh
gives "another option implies --ckpt" "^keep=7$" sbatch --parsable --ckpt-keep=7 --ckpt-dir=runs plain.sh
gives "\$SCRATCH" "dir=$CASE/scratch/ckpt/mini-" env SCRATCH="$CASE/scratch" sbatch --parsable --ckpt \
	-J ckpt-options -o out-%j --wrap 'echo "keep= dir=$SLURM_CKPT_DIR"'
tap_is "$(count_lines 'checkpoints go to' notices)" 0 "a directory that was named needs no notice"
gives "no directory" "dir=$CASE/ckpt/mini-" sbatch --parsable --ckpt \
	-J ckpt-options -o out-%j --wrap 'echo "keep= dir=$SLURM_CKPT_DIR"'
tap_is "$(count_lines "checkpoints go to $CASE/ckpt;" notices)" 1 "... and one notice says where"
no_drained
done_testing
