# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The C files of the project, for the tools that go over all of them; sourced in its top folder.
c_sources() {
	find src tests include examples \( -name '*.c' -o -name '*.h' \) -print 2>/dev/null | sort
}
