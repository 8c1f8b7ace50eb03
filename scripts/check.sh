#!/bin/bash
# SPDX-License-Identifier: MIT
# check.sh [--quick [BUILD]] [STEP...]: builds and tests; the last line says "N passed, N failed,
# N skipped", and the exit status is not 0 when anything failed.
#
#   gcc       build with gcc, warnings are errors; all suites except external
#   external  real programs on the kernel's IPC and on usysv
#   clang     build with clang, warnings are errors; the fast suites
#   asan      AddressSanitizer and UBSan: unit, conform, stress, fuzz
#   tsan      ThreadSanitizer: unit and stress, where threads pose as processes
#   tidy      clang-tidy
#   format    clang-format
#   shell     shellcheck
#
# Without a STEP all of them. --quick: the fast suites in BUILD, below a minute. Build folders are
# build-check/NAME, logs build-check/NAME.log. CHECK_MULTIPLIER stretches all time-outs (slow machines).
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh

top=build-check
jobs=$(nproc)
multiplier=${CHECK_MULTIPLIER:-1}
# Fast enough for `make quick`; the rest is for the full run.
fast_suites=(lint unit quick)
mkdir -p $top
tally=$top/tally
: >$tally

say() { printf '== %-9s %s\n' "$1" "$2"; }

# count OUTCOME NAME [REASON]
count() {
	case $1 in
	passed) echo '1 0 0' >>$tally ;;
	failed)
		echo '0 1 0' >>$tally
		echo "  FAILED   $2${3:+: $3}"
		;;
	skipped)
		echo '0 0 1' >>$tally
		echo "  skipped  $2: $3"
		;;
	esac
}

# limited SECONDS COMMAND...
limited() {
	local seconds=$1
	shift
	timeout -k 10 $((seconds * multiplier)) "$@" </dev/null
}

# tool NAME SECONDS COMMAND...: one check that passes, fails, or is skipped (status 77).
tool() {
	local name=$1 seconds=$2 status
	shift 2
	limited "$seconds" "$@" >"$top/$name.log" 2>&1
	status=$?
	case $status in
	0) count passed "$name" ;;
	77) count skipped "$name" "$(sed -n '$s/^SKIP: //p' "$top/$name.log")" ;;
	124 | 137) count failed "$name" "not finished within $seconds s" ;;
	*)
		tail -n 40 "$top/$name.log" | sed 's/^/      | /'
		count failed "$name" "status $status, see $top/$name.log"
		;;
	esac
	return $status
}

# build NAME COMPILER [MESON OPTION...]
build() {
	local name=$1 compiler=$2
	shift 2
	if ! command -v "$compiler" >/dev/null; then
		count skipped "build-$name" "$compiler is not installed"
		return 1
	fi
	if [ ! -f "$top/$name/build.ninja" ]; then
		rm -rf "${top:?}/$name"
		CC=$compiler limited 120 meson setup --werror -Dtests=enabled "$@" "$top/$name" \
			>"$top/setup-$name.log" 2>&1 || {
			tail -n 20 "$top/setup-$name.log" | sed 's/^/      | /'
			count failed "setup-$name" "see $top/setup-$name.log"
			return 1
		}
	fi
	tool "build-$name" 600 ninja -C "$top/$name" -j "$jobs"
}

# suites NAME SECONDS [MESON TEST OPTION...]
suites() {
	local name=$1 seconds=$2 status folder
	shift 2
	folder=${BUILD_FOLDER:-$top/$name}
	rm -f "$folder/meson-logs/testlog.json"
	limited "$seconds" meson test -C "$folder" --no-rebuild -t "$multiplier" "$@" \
		>"$top/test-$name.log" 2>&1
	status=$?
	case $status in
	124 | 137) count failed "test-$name" "not finished within $seconds s" ;;
	esac
	if [ -s "$folder/meson-logs/testlog.json" ]; then
		[ $status = 0 ] || limited "$seconds" python3 scripts/again.py "$folder" "$multiplier"
		python3 scripts/results.py $tally "$name" "$folder/meson-logs/testlog.json" ||
			count failed "test-$name" "its results cannot be read"
	else
		tail -n 20 "$top/test-$name.log" | sed 's/^/      | /'
		count failed "test-$name" "no results"
	fi
}

with_suites() { printf -- '--suite\n%s\n' "$@"; }

step_gcc() {
	say gcc "build and suites"
	build gcc gcc || return
	suites gcc 1200 --no-suite external
}

step_external() {
	say external "real programs"
	[ -f $top/gcc/build.ninja ] || build gcc gcc || return
	BUILD_FOLDER=$top/gcc suites external 2400 --suite external
}

step_clang() {
	local options
	say clang "build and fast suites"
	build clang clang || return
	mapfile -t options < <(with_suites unit quick)
	suites clang 300 "${options[@]}"
}

step_asan() {
	local options
	say asan "AddressSanitizer, UBSan"
	build asan gcc -Db_sanitize=address,undefined -Db_lundef=false || return
	mapfile -t options < <(with_suites unit conform stress fuzz)
	# The runtime comes after the preloaded library; a program killed half-way leaks by design.
	ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:abort_on_error=1:handle_segv=0 \
		UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:abort_on_error=1 \
		suites asan 900 "${options[@]}"
}

step_tsan() {
	local options
	say tsan "ThreadSanitizer"
	build tsan gcc -Db_sanitize=thread -Db_lundef=false || return
	mapfile -t options < <(with_suites unit stress)
	TSAN_OPTIONS=halt_on_error=1:abort_on_error=1 suites tsan 600 "${options[@]}"
}

step_tidy() {
	say tidy "clang-tidy"
	[ -f $top/gcc/build.ninja ] || build gcc gcc || return
	tool tidy 2400 scripts/tidy.sh $top/gcc
}

step_format() {
	say format "clang-format"
	tool format 60 scripts/format.sh --check
}

step_shell() {
	say shell "shellcheck"
	if ! command -v shellcheck >/dev/null; then
		count skipped shellcheck "it is not installed"
		return
	fi
	find . -path ./build\* -prune -o -name '*.sh' -print0 >$top/scripts
	tool shellcheck 60 xargs -0 -a $top/scripts shellcheck -S warning .ci/run
}

if [ "${1:-}" = --quick ]; then
	mapfile -t options < <(with_suites "${fast_suites[@]}")
	BUILD_FOLDER=${2:-build} suites quick 120 "${options[@]}"
else
	steps=("$@")
	[ $# -gt 0 ] || steps=(shell format gcc clang asan tsan tidy external)
	for step in "${steps[@]}"; do
		declare -F "step_$step" >/dev/null || { echo "check.sh: no step $step" >&2; exit 2; }
		begin=$SECONDS
		"step_$step"
		echo "   $((SECONDS - begin)) s"
	done
fi

awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' \
	$tally | tee $top/summary
! grep -qE ' [1-9][0-9]* [0-9]+$' $tally
