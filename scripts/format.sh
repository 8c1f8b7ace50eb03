#!/bin/bash
# SPDX-License-Identifier: MIT
# format.sh [--check]: brings all C files into the form of .clang-format, or says which are not.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh

# Formats differ between versions of clang-format; the tree follows that of Debian 12.
version=$(clang-format --version 2>/dev/null | grep -oE '[0-9]+' | head -1)
if [ -z "$version" ]; then
	echo "SKIP: clang-format is not installed"
	exit 77
fi
if [ "${1:-}" = --check ]; then
	if [ "$version" != 14 ]; then
		echo "SKIP: clang-format 14 decides, this is $version"
		exit 77
	fi
	c_sources | xargs clang-format --dry-run -Werror
else
	c_sources | xargs clang-format -i
fi
