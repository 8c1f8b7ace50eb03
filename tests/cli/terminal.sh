#!/bin/sh
# SPDX-License-Identifier: MIT
# On a terminal the program is in the foreground, in the session and the process group of usysv run;
# ^C reaches it once; ^Z stops both, and fg continues both. The same when the program has a process
# group of its own in the foreground (an interactive shell).
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || skip 'needs python3 for a pseudo-terminal'
cat >"$work/drive.py" <<'EOF'
import os, pty, sys, time, select, re, signal

usysv = sys.argv[1]
deadline = time.monotonic() + 60
pid, fd = pty.fork()
if pid == 0:
    os.environ['PS1'] = 'PROMPT> '
    os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])
seen = ''

def keep_deadline(what):
    if time.monotonic() > deadline:
        print('FAILED: waited for', what, 'in', repr(seen))
        os.kill(pid, signal.SIGKILL)
        sys.exit(1)

def expect(pattern):
    global seen
    while not re.search(pattern, seen):
        keep_deadline(pattern)
        if select.select([fd], [], [], 0.1)[0]:
            try:
                seen += os.read(fd, 65536).decode(errors='replace')
            except OSError:
                seen += '<closed>'
                time.sleep(0.05)
    match = re.search(pattern, seen)
    seen = seen[match.end():]
    return match

# No shell waits for it, and until then it may still read what is typed next.
def until_stopped(process):
    while open('/proc/' + process + '/stat').read().rsplit(')', 1)[1].split()[0] != 'T':
        keep_deadline(process + ' to stop')
        time.sleep(0.01)

def type_line(text):
    os.write(fd, (text + '\n').encode())

expect('PROMPT> ')
type_line("bind 'set enable-bracketed-paste off' 2>/dev/null; stty -echo; PS1='PRO''MPT> '")
expect('PROMPT> ')

# one session, one group, in the foreground
type_line(usysv + """ run -- sh -c 'ps -o pgid=,sid=,tpgid= -p $$,$PPID | tr -s " \\n" "  "; """
          """echo "=E""ND"'""")
expect(r'=END')
type_line(usysv + """ run -- sh -c 'set -- $(ps -o pgid=,sid=,tpgid= -p $$) """
          """$(ps -o pgid=,sid=,tpgid= -p $PPID); """
          """test $1 = $3 -a $1 = $4 -a $2 = $5 && echo SA""ME || echo DIFFE""RENT $*; """
          """test -t 0 && echo T""TY'""")
expect('SAME')
expect('TTY')
expect('PROMPT> ')

# ^C: once
type_line(usysv + """ run -- bash -c 'n=0; trap "n=\\$((n+1))" INT; echo REA""DY; """
          """for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done; """
          """while ((n == 0)); do sleep 0.05; done; sleep 0.3; echo COU""NT=$n'""")
expect('READY')
os.write(fd, b'\x03')
expect('COUNT=1')
expect('PROMPT> ')

# ^C kills a plain program; the status is the shell's
type_line(usysv + " run -- sh -c 'echo REA''DY; exec sleep 1000'; echo STA''TUS=$?")
expect('READY')
os.write(fd, b'\x03')
expect('STATUS=130')
expect('PROMPT> ')

# ^Z, fg, twice; the program's answer tells that it has the terminal again
type_line(usysv + """ run -- sh -c 'echo REA""DY; while read line; do echo LI""NE=$line; """
          """test "$line" = end && exit 9; done'; echo STA''TUS=$?""")
expect('READY')
for turn in ('one', 'two'):
    os.write(fd, b'\x1a')
    expect('Stopped')
    expect('PROMPT> ')
    type_line('fg')
    type_line(turn)
    expect('LINE=' + turn)
type_line('end')
expect('LINE=end')
expect('PROMPT> ')

# one in raw mode, which stops its group by itself
type_line(usysv + " run -- python3 " + sys.argv[2] + '/raw.py')
expect('READY')
for turn in (1, 2):
    os.write(fd, b'\x1a')
    expect('Stopped')
    expect('PROMPT> ')
    type_line('fg')
    expect('BACK')
os.write(fd, b'q')
expect('PROMPT> ')

# an interactive shell, in a group of its own, suspends itself; a pipeline stops as a whole
for tail, end in (('', 7), (' | cat', 0)):
    type_line('PS1="IN""NER> " ' + usysv + ' run -- bash --norc --noprofile -i 2>&1' + tail)
    expect('INNER> ')
    for turn in ('one', 'two'):
        type_line('suspend')
        expect('Stopped')
        expect('PROMPT> ')
        type_line('fg')
        type_line('echo A""GAIN=' + turn)
        expect('AGAIN=' + turn)
        expect('INNER> ')
    type_line('exit 7')
    expect('PROMPT> ')
    type_line('echo STA""TUS=$?')
    expect('STATUS=%d' % end)
    expect('PROMPT> ')

# a group of several processes, of which the program does not read itself
type_line(usysv + ' run -- python3 ' + sys.argv[2] + '/group.py')
reader = expect(r'READY=(\d+)\r').group(1)
for turn in (1, 2):
    os.write(fd, b'\x1a')
    expect('Stopped')
    expect('PROMPT> ')
    until_stopped(reader)
    type_line('fg')
    type_line('line%d' % turn)
    expect('READ=line%d' % turn)
os.write(fd, b'\x03')
expect('PROMPT> ')

# its shell dies while it is stopped: it is hung up and continued
type_line(usysv + ' run -- python3 ' + sys.argv[2] + '/group.py')
reader = expect(r'READY=(\d+)\r').group(1)
os.write(fd, b'\x1a')
expect('Stopped')
until_stopped(reader)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
EOF
cat >"$work/raw.py" <<'EOF'
import os, signal, termios, tty

before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'READY\r\n')
while os.read(0, 1) != b'q':
    termios.tcsetattr(0, termios.TCSADRAIN, before)
    os.kill(0, signal.SIGTSTP)
    tty.setraw(0)
    os.write(1, b'BACK\r\n')
termios.tcsetattr(0, termios.TCSADRAIN, before)
EOF
cat >"$work/group.py" <<'EOF'
import os, signal

signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.setpgid(0, 0)
os.tcsetpgrp(0, os.getpgrp())
signal.signal(signal.SIGTTOU, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.SIG_DFL)
child = os.fork()
if child == 0:
    print('READY=%d' % os.getpid(), flush=True)
    while True:
        print('READ=' + input(), flush=True)
os.waitpid(child, 0)
EOF
status 0 python3 "$work/drive.py" "$usysv" "$work"
until_true 10 nothing_left

# A lost terminal: the program gets its hang-up although usysv run leads the session.
if command -v script >/dev/null; then
	rm -f "$work/pid"
	script -qec "exec '$usysv' run -- sh -c 'echo \$\$ >$work/pid; exec sleep 1000'" /dev/null \
		</dev/null >/dev/null 2>&1 &
	pid=$!
	started $pid
	if until_true 10 one_line "$work/pid"; then
		kill -KILL $pid
		until_true 10 gone "$(cat "$work/pid")"
	fi
	until_true 10 nothing_left
fi
