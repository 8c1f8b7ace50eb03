#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that have run out of something (lack.c). Called as lack.sh USYSV LACK.
. "$(dirname "$0")/../cli/lib.sh"

for which in well nofile-first nofile-between as-first as-between data-first data-between \
	fsize-first fsize-between nproc-first nproc-between closefrom-3 closefrom-0 \
	closefrom-thread; do
	status 0 "$usysv" run --check -- "$user" $which
	case $which in # who cannot enter the namespace says why, once
	as-first | data-first)
		says "^usysv: cannot .* namespace 'run-.*: is .* limited"
		[ "$(wc -l <"$work/err")" -eq 1 ] || fail "$which: $(cat "$work/err")"
		;;
	esac
	nothing_left || fail "$which: something is left in $root"
done

# A tmpfs so small that it is full soon; it exists for the one command alone.
mkdir "$work/small"
if ! unshare -rm true 2>/dev/null && ! unshare -m true 2>/dev/null; then
	echo 'skipped: no mounts here'
	exit 0
fi
for size in 1m 2m 8m; do
	# As root the mount is allowed as it is; as a user, in a namespace of users too.
	for options in -m -rm; do
		unshare $options true 2>/dev/null || continue
		for which in full full-shm; do
			status 0 unshare $options -- sh -c '
				mount -t tmpfs -o size="$1",mode=700 none "$2" &&
				USYSV_DIR=$2 exec "$3" run --check -- "$4" "$5"' \
				sh $size "$work/small" "$usysv" "$user" $which
		done
		break
	done
done
