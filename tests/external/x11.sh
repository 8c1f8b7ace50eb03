#!/bin/bash
# SPDX-License-Identifier: MIT
# Xvfb, its screen in a segment (-shmem), and clients of its MIT-SHM extension: the server attaches
# by an id that a client sends. Pictures are compared pixel by pixel (x11-shm.c); clients and server
# are killed.
. "$(dirname "$0")/lib.sh"
need Xvfb x11perf xdpyinfo xsetroot xwd perl
[ -x "${X11_SHM:-}" ] || skip "needs libxext-dev and libx11-dev when usysv is built"
need_family shm
number=
server=

trouble() {
	tail -n 20 server.log out 2>/dev/null
	segments
	fail "$*"
}

# A server that is killed leaves its lock and its socket, where all programs look for them.
clean_up() {
	[ -z "$server" ] || { kill -KILL "$server" && wait "$server"; } 2>/dev/null
	[ -z "$number" ] || rm -f "/tmp/.X$number-lock" "/tmp/.X11-unix/X$number"
	[ -z "${made:-}" ] || rmdir /tmp/.X11-unix 2>/dev/null
}
trap clean_up EXIT
[ -d /tmp/.X11-unix ] || made=yes

answers_or_ended() { xdpyinfo || ! kill -0 "$server"; }
# start: the number is taken at random, for others may start servers at the same time
start() {
	local try
	for try in 1 2 3 4 5; do
		number=$((1000 + RANDOM))
		if [ ! -e "/tmp/.X$number-lock" ] && [ ! -e "/tmp/.X11-unix/X$number" ]; then
			export DISPLAY=:$number
			Xvfb $DISPLAY -screen 0 1024x768x24 -shmem -nolisten tcp -noreset \
				>server.log 2>&1 &
			server=$!
			until_true 30 answers_or_ended || trouble "the server does not answer"
			kill -0 $server && break
		fi
		number=
	done
	[ -n "$number" ] || trouble "the server does not start"
	screen=$(sed -n 's/.*shmid \([0-9]*\).*/\1/p' server.log)
	[ -n "$screen" ] || trouble "the server does not tell the id of its screen"
}
only_screen() { [ "$(segments | awk '{ print $1, $3 }')" = "$screen 1" ]; }
# The server leaves its screen behind, to whoever wants to look at it.
remove_screen() {
	until_true 10 attached "$screen" 0 || trouble "the screen of a server that ended"
	perl -e 'shmctl $ARGV[0], 0, 0 or die "$!\n"' "$screen" >out 2>&1 || trouble "IPC_RMID"
	no_segments || trouble "segments are left"
}
attached() { [ "$(segments | awk -v id="$1" '$1 == id { print $3 }')" = "$2" ]; }
gone() { ! segments | awk '{ print $1 }' | grep -qx "$1"; }

# The picture in the screen's segment and the one that xwd fetches; both have the format of xwd.
cat >compare.pl <<'P'
use strict;
use warnings;
my ($id, $file, @colour) = @ARGV;
my ($there, $fetched, $part) = ('', '');
sub picture {
	my ($size, $version, $width, $height, $line, $colours) =
		(unpack 'N*', $_[0])[0, 1, 4, 5, 12, 19];
	$version == 7 && $width == 1024 && $height == 768
		or die "no picture: $version $width $height\n";
	return substr $_[0], $size + 12 * $colours, $line * $height;
}
open my $f, '<:raw', $file or die;
{ local $/; $fetched = picture(scalar <$f>); }
my $ds = '';
shmctl $id, 2, $ds or die "IPC_STAT: $!\n";
shmread $id, $there, 0, unpack 'x48 J', $ds or die "shmread: $!\n";
$there = picture($there);
s/(...)./$1/gs for $there, $fetched;
my $right = pack 'C3', map { hex } @colour;
my $wrong = grep { substr($fetched, 3 * $_, 3) ne $right } 0 .. 1024 * 768 - 1;
$there eq $fetched or die "the segment shows something else\n";
$wrong == 0 or die "$wrong pixels of another colour\n";
P
colour() {
	xsetroot -solid "#$3$2$1" || trouble "xsetroot"
	xwd -root -silent -out picture || trouble "xwd"
	perl compare.pl "$screen" picture "$1" "$2" "$3" >out 2>&1 ||
		trouble "screen of colour $3$2$1"
}

start
xdpyinfo | grep -q MIT-SHM || trouble "the server has no MIT-SHM"
only_screen || trouble "there should be the screen's segment"
colour 99 66 33
colour 01 fe 80

out=$("$X11_SHM" pictures 2>&1) || trouble "$out"
[ "$out" = "done" ] || trouble "printed: $out"
until_true 20 only_screen || trouble "segments are left after a client"

tests=(-shmput100 -shmputxy100 -shmget100 -shmgetxy100)
x11perf -display $DISPLAY -reps 50 -repeat 1 "${tests[@]}" >perf 2>&1 ||
	trouble "x11perf: $(cat perf)"
[ "$(grep -c ' reps @.*: Shm' perf)" = ${#tests[@]} ] || trouble "x11perf: $(cat perf)"
until_true 20 only_screen || trouble "segments are left after x11perf"

if command -v ffmpeg >/dev/null; then
	colour 11 aa 22
	ffmpeg -nostdin -loglevel error -f x11grab -draw_mouse 0 -video_size 1024x768 -i $DISPLAY \
		-frames:v 1 -f rawvideo -pix_fmt rgb24 -y grabbed >out 2>&1 || trouble "ffmpeg"
	perl -e 'local $/; exit(<STDIN> ne "\x22\xaa\x11" x (1024 * 768))' <grabbed ||
		trouble "ffmpeg has grabbed something else"
	until_true 20 only_screen || trouble "segments are left after ffmpeg"
fi

# Clients that are killed: their segments are marked for removal and end with the server's attach
for n in 1 2 3; do
	rm -f held # of the one before
	"$X11_SHM" hold >held 2>&1 &
	client=$!
	until_true 20 grep -qsx '[0-9]*' held || trouble "no client that holds: $(cat held)"
	attached "$(cat held)" 2 || trouble "not attached by client and server"
	kill -KILL $client
	wait $client 2>/dev/null
	until_true 20 gone "$(cat held)" || trouble "the segment of a killed client is left"
	until_true 20 only_screen || trouble "segments are left after a killed client"
done
kill -TERM "$server"
wait "$server" || trouble "the server ended with status $?"
server=
remove_screen

# The server is killed: the client goes on with its segment.
clean_up
start
rm -f held
"$X11_SHM" survive >held 2>&1 &
client=$!
until_true 20 grep -qsx '[0-9]*' held || trouble "no client that holds: $(cat held)"
id=$(cat held)
attached "$id" 2 || trouble "not attached by client and server"
kill -KILL "$server"
wait "$server" 2>/dev/null
wait $client || trouble "the client of the killed server: status $?, $(cat held)"
[ "$(tail -n 1 held)" = survived ] || trouble "the client of the killed server: $(cat held)"
until_true 10 gone "$id" || trouble "the client's segment is left"
remove_screen
pass "pictures both ways, x11perf, killed clients, a killed server"
