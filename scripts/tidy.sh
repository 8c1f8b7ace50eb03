#!/bin/bash
# SPDX-License-Identifier: MIT
# tidy.sh [BUILD]: clang-tidy over the C files of src/ that the build compiles; any finding is an
# error. Tests are left to the compilers and sanitizers.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}

command -v clang-tidy >/dev/null || { echo "SKIP: clang-tidy is not installed"; exit 77; }
[ -f "$build/compile_commands.json" ] || { echo "tidy.sh: $build is no build folder" >&2; exit 2; }
# clang-tidy does not know every option of gcc; what it does not know does not matter to it.
python3 - "$build" <<'P' | xargs -0 -r -n 4 -P "$(nproc)" clang-tidy -p "$build" --quiet \
	--extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' 2>/dev/null
import json, os, sys
build = sys.argv[1]
with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as f:
    files = {os.path.realpath(os.path.join(c['directory'], c['file'])) for c in json.load(f)}
sys.stdout.write('\0'.join(sorted(f for f in files if f.endswith('.c') and f.startswith(os.path.realpath('src') + '/'))))
P
