#!/bin/bash
# SPDX-License-Identifier: MIT
# check.sh MODEL SECONDS [-DSWITCH...]             every state is good
# check.sh --caught MODEL SECONDS [-DSWITCH...]    the planted defect is noticed
#
# Makes a verifier of MODEL.pml with the switches and runs it. All of the states must have been
# seen within SECONDS of the CPU's time. Exit status 77: the tools are not there.
set -u
here=$(cd "$(dirname "$0")" && pwd)
caught=no
if [ "$1" = --caught ]; then
	caught=yes
	shift
fi
model=$1 seconds=$2
shift 2

for tool in spin gcc; do
	if ! command -v $tool >/dev/null; then
		echo "SKIP: $tool is not installed"
		exit 77
	fi
done
# An empty folder of its own: spin writes its files where it stands.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

spin -a "$@" "$here/$model.pml" >spin.log 2>&1 || { cat spin.log; exit 1; }
# What ends early is not worth a long compilation.
optimise=-O1
[ $caught = yes ] && optimise=-O0
gcc $optimise -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM="${MODEL_MEMORY_MIB:-4000}" -w -o pan pan.c ||
	exit 1
(ulimit -t "$seconds" && exec ./pan -m2000000) >pan.log 2>&1
status=$?
grep -E 'assertion violated|invalid end state|states, stored|errors:' pan.log
if [ $status != 0 ] || ! grep -q 'errors: ' pan.log; then
	tail -n 5 pan.log
	echo "not finished: status $status (limits: $seconds s, MODEL_MEMORY_MIB)"
	exit 1
fi
if grep -qE 'Search not completed|max search depth too small' pan.log &&
	! grep -qE 'pan:1: ' pan.log; then
	tail -n 20 pan.log
	echo "not all states were seen"
	exit 1
fi
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
case $caught,$errors in
no,0) echo "$model $*: good" ;;
yes,0)
	echo "$model $*: the defect was not noticed"
	exit 1
	;;
no,*)
	spin -k "$model.pml.trail" -p -g "$@" "$here/$model.pml" 2>/dev/null | tail -n 60
	echo "$model $*: wrong"
	exit 1
	;;
yes,*) echo "$model $*: the defect was noticed" ;;
esac
