#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that never heard of the library behave with it as without: same output, same status.
# Usage: programs.sh LIBRARY. Programs that are not installed are passed over.
library=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

# same NAME COMMAND...: runs the command both ways
same() {
	name=$1
	shift
	if ! command -v "$1" > "$work/found" 2>&1; then
		echo "skip   $name: no $1"
		return
	fi
	timeout 60 "$@" < /dev/null > "$work/plain.out" 2> "$work/plain.err"
	plain=$?
	LD_PRELOAD=$library timeout 60 "$@" < /dev/null > "$work/preload.out" 2> "$work/preload.err"
	status=$?
	if [ $plain -ne $status ] || ! cmp -s "$work/plain.out" "$work/preload.out"; then
		echo "FAILED $name: status $plain and $status"
		diff "$work/plain.out" "$work/preload.out" | head -20
		head -20 "$work/preload.err"
		failed=1
	else
		echo "ok     $name"
	fi
}

shell_script='
trap "echo usr1" USR1
trap "echo exit" EXIT
kill -USR1 $$
(kill -TERM $$) & wait $!
sleep 0.01 & wait
x=$(echo sub | cat); echo "$x"
sh -c "kill -SEGV \$\$"; echo $?
sh -c "exit 3"; echo $?
env -i /bin/sh -c "echo clean"
trap "echo chld" CHLD; (exit 1); ls / > /dev/null; echo end
exec sh -c "exit 4"'
same bash bash -c "trap '' TERM; $shell_script"
same dash dash -c "trap '' TERM; $shell_script"

same perl perl -e '
use POSIX; $| = 1;
$SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 10; }; print $@;
$SIG{CHLD} = sub { print "chld\n" }; my $p = fork // die; if (!$p) { POSIX::_exit(5) }
1 while waitpid($p, 0) != $p; print $? >> 8, "\n";
print `echo hello`; system("exit 2"); print $? >> 8, "\n"; kill "KILL", $$;'

same python3 python3 -c '
import signal, os, subprocess, sys, time, threading, faulthandler
faulthandler.enable()
hits = []
signal.signal(signal.SIGUSR1, lambda s, f: hits.append(s))
os.kill(os.getpid(), signal.SIGUSR1); print(hits)
print(signal.getsignal(signal.SIGUSR1) is not None, signal.getsignal(signal.SIGSEGV))
signal.siginterrupt(signal.SIGUSR1, False)
print(subprocess.run(["sh", "-c", "exit 3"]).returncode)
print(subprocess.check_output(["echo", "x"], env={}))
print(os.waitstatus_to_exitcode(os.system("exit 4")))
crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
print(subprocess.run([sys.executable, "-c", crash]).returncode)
t = threading.Thread(target=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]))
t.start(); t.join()
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try: time.sleep(5)
except KeyboardInterrupt: print("interrupted")
pid = os.fork()
if pid == 0: os._exit(7)
print(os.waitid(os.P_PID, pid, os.WEXITED).si_status)
sys.stdout.flush(); os.abort()'

same node node -e '
const { execSync, spawnSync } = require("child_process");
process.on("SIGUSR2", () => { console.log("usr2"); worker(); });
function worker() { const { Worker } = require("worker_threads");
  new Worker("require(\"worker_threads\").parentPort.postMessage(1)", { eval: true })
    .on("message", (m) => console.log("worker", m)).on("exit", () => process.exit(6)); }
console.log(execSync("echo x").toString(), spawnSync("sh", ["-c", "exit 3"]).status);
setTimeout(() => {}, 20000); process.kill(process.pid, "SIGUSR2");'

cat > "$work/Try.java" <<'END'
public class Try {
	static int deep(int n) { return n + deep(n + 1); }
	public static void main(String[] a) throws Exception {
		int caught = 0;
		for (int i = 0; i < 20000; i++) {
			try { String s = i < 0 ? "" : null; caught += s.length(); }
			catch (NullPointerException e) { caught++; }
		}
		try { deep(0); } catch (StackOverflowError e) { caught++; }
		System.out.println(caught);
		Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
		System.out.println(new ProcessBuilder("sh", "-c", "exit 3").start().waitFor());
		System.exit(5);
	}
}
END
same java java "$work/Try.java"

# ThreadSanitizer within the program is not set up when the first constructors run.
echo 'int main(void) { return 3; }' > "$work/three.c"
if clang -fsanitize=thread -o "$work/three" "$work/three.c" > "$work/found" 2>&1; then
	same tsan "$work/three"
fi

same php php -r 'echo shell_exec("echo x"); exec("exit 3", $o, $r); echo $r, "\n";'
same gdb sh -c 'gdb -batch -ex run -ex "print 6 * 7" --args sh -c "exit 3" |
	sed "s/process [0-9]*/process/"'
same valgrind valgrind -q --error-exitcode=9 sh -c 'kill -USR1 $$'
same make make -f /dev/null -v
same "env -i" env -i /bin/sh -c 'echo clean; exit 2'
same timeout timeout 0.1 sleep 5
same xargs sh -c 'seq 20 | xargs -n 3 -P 4 echo | sort'
same tar sh -c 'tar cf - -C /usr/bin env sh | tar tf -'

exit $failed
