#!/bin/sh
#
# Installs the Debian packages that slurm-ckpt needs to build, test and demonstrate (Debian 12, 13).
#
#   deps.sh [--dev] [--list]
#     --dev   also what checks the code: clang tools, cppcheck, mandoc, shellcheck
#     --list  print the packages, install nothing
#
# Only what is missing is installed; with everything there apt is not called at all. No service is
# enabled or started by this script, and contrib/minicluster needs none. (On a machine with systemd
# Debian's own package scripts decide: without /etc/slurm/slurm.conf slurmctld and slurmd stay off.)
# The example training reads /usr/share/common-licenses/GPL-3, which base-files always installs.

set -eu

build='gcc make pkg-config libc6-dev libslurm-dev libopenmpi-dev libssl-dev libcjson-dev zlib1g-dev libisal-dev liburing-dev'
cluster='slurm-wlm slurm-wlm-basic-plugins slurm-client munge openmpi-bin iproute2 util-linux e2fsprogs procps passwd'
tests='perl python3'
# libmunge-dev libpmix-dev bzip2: for contrib/slurm-from-source.
# libclang-rt-dev follows clang's version: -14 on Debian 12, -19 on Debian 13
dev='debootstrap clang clang-tidy clang-format libclang-rt-dev cppcheck mandoc shellcheck'
dev="$dev libmunge-dev libpmix-dev bzip2"

fail() {
	echo "deps: $*" >&2
	exit 1
}

packages="$build $cluster $tests"
list=
for argument; do
	case $argument in
	--dev) packages="$packages $dev" ;;
	--list) list=yes ;;
	*) fail "unknown argument '$argument'; usage: deps.sh [--dev] [--list]" ;;
	esac
done

if [ "$list" ]; then
	printf '%s\n' $packages
	exit
fi

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
	fail "no apt here: this script knows Debian only; elsewhere install the equivalents of: deps.sh --list"

missing=
for package in $packages; do
	# pkg-config is a name that pkgconf provides on Debian 13, hence Provides
	dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null |
		grep -Eq "^installed (.*[ ,])?$package([ ,(]|\$)" || missing="$missing $package"
done
if [ -z "$missing" ]; then
	echo "deps: all packages are installed"
	exit
fi

[ "$(id -u)" = 0 ] || fail "not root; as root this would install:$missing"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive

run() {
	"$@" >"$log" 2>&1 </dev/null && return
	tail -n 12 "$log" >&2
	fail "'$*' failed, its last lines are above"
}

run apt-get -q -o DPkg::Lock::Timeout=120 update
run apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold install --no-install-recommends $missing
echo "deps: installed$missing"
