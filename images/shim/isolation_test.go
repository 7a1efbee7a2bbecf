package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// call writes one system call for the probe.
func call(number int, args ...any) string {
	parts := []string{fmt.Sprint(number)}
	for _, arg := range args {
		parts = append(parts, fmt.Sprint(arg))
	}
	return strings.Join(parts, ",")
}

func TestAProgramWithoutNetworkHasUnixSocketsOnly(t *testing.T) {
	s := container(t)
	rows := []struct {
		name string
		call string
		want string
	}{
		{"inet", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0), "EPERM"},
		{"udp", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0), "EPERM"},
		{"inet6", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM, 0), "EPERM"},
		{"netlink", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 0), "EAFNOSUPPORT"},
		{"vsock", call(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0), "EPERM"},
		{"packet", call(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0), "EPERM"},
		{"io_uring", call(unix.SYS_IO_URING_SETUP, 8, "P"), "EPERM"},
		{"unix", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0), "ok"},
		{"unix pair", call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, "P"), "ok"},
	}
	var calls []string
	for _, row := range rows {
		calls = append(calls, row.call)
	}
	got := s.probeLines("none", append([]string{"syscalls"}, calls...)...)
	for i, row := range rows {
		if got[i] != row.want {
			t.Errorf("%s: %s, want %s", row.name, got[i], row.want)
		}
	}
	if got := s.probeLines("open", "syscalls", rows[0].call, rows[2].call); !reflect.DeepEqual(got, []string{"ok", "ok"}) {
		t.Errorf("with an open network: %q; it must be the filter that refuses the others", got)
	}
}

func TestSocketsOfAnotherArchitectureAreRefused(t *testing.T) {
	s := container(t)
	if unfiltered, err := exec.Command(binaries+"/probe", "foreign", "2", "1", "0").Output(); err == nil && string(unfiltered) == "EPERM\n" {
		t.Log("this kernel refuses them by itself")
	}
	for _, network := range []string{"none", "open"} {
		if got := s.probeLines(network, "foreign", "2", "1", "0"); got[0] != "EPERM" {
			t.Errorf("int 0x80 under %s: %s", network, got[0])
		}
	}
}

func TestWaysOutAreRefusedUnderEveryNetwork(t *testing.T) {
	s := container(t)
	rows := []struct {
		name string
		call string
		want string
	}{
		{"trace the shim", call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1), "EPERM"},
		{"read its memory", call(unix.SYS_PROCESS_VM_READV, 1, "P", 1, "P", 1), "EPERM"},
		{"a user namespace", call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), "EPERM"},
		{"clone3", call(unix.SYS_CLONE3, "P", 88), "ENOSYS"},
		{"a message queue", call(unix.SYS_MQ_OPEN, "P", unix.O_CREAT, 0o600), "ENOSYS"},
		{"a key", call(unix.SYS_KEYCTL, 0), "EPERM"},
		{"a program of bpf", call(unix.SYS_BPF, 0, "P", 8), "EPERM"},
		{"a mount", call(unix.SYS_MOUNT, "P", "P", "P"), "EPERM"},
		{"the shim's limits", call(unix.SYS_PRLIMIT64, 1, unix.RLIMIT_NOFILE, "P"), "EPERM"},
		{"own limits", call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 0, "P"), "ok"},
	}
	for _, network := range []string{"none", "loopback:9", "open"} {
		args := []string{"syscalls"}
		for _, row := range rows {
			args = append(args, row.call)
		}
		got := s.probeLines(network, args...)
		for i, row := range rows {
			if got[i] != row.want {
				t.Errorf("%s under %s: %s, want %s", row.name, network, got[i], row.want)
			}
		}
	}
}

func TestTheShimItselfIsOutOfReach(t *testing.T) {
	for binary, paths := range map[string][]string{
		"shim":  {"/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd/0", inside + "/shim"},
		"built": {"/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd/0"},
	} {
		got := containerOf(t, binary).probeLines("open", append([]string{"open"}, paths...)...)
		for i, result := range got {
			if result != "EACCES" {
				t.Errorf("%s of %s: %s", paths[i], binary, result)
			}
		}
	}
}

func TestNoSignalOfAProgramEndsTheShim(t *testing.T) {
	s := container(t)
	for _, signal := range []unix.Signal{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 24, 25, 31, 34, 64} {
		if got := s.probeLines("open", "signal", "1", fmt.Sprint(int(signal))); got[0] != "ok" {
			t.Errorf("signal %v: %s", signal, got[0])
		}
	}
	if e := s.run(program{argv: []string{"echo", "well"}}); e.stdout != "well\n" {
		t.Errorf("after all signals: %q", e.stdout)
	}
}

func TestAProgramWithOnePortReachesThatPortByTCPAlone(t *testing.T) {
	s := container(t)
	ports := make([]string, 2)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ports[i] = fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	}
	network := "loopback:" + ports[0]
	kernel, _ := s.hello.header["kernel"].(map[string]any)
	if abi, _ := kernel["landlock"].(float64); abi < landlockNet {
		m := s.ask(program{argv: []string{"true"}, network: network}.header(), nil)
		if m.fault() != "environment EnvironmentFailed" {
			t.Errorf("a kernel that cannot confine TCP: %v", m.header)
		}
		return
	}
	for _, row := range []struct {
		name string
		args []string
		want []string
	}{
		{"the port", []string{"connect", "tcp", "127.0.0.1:" + ports[0]}, []string{"ok"}},
		{"another port", []string{"connect", "tcp", "127.0.0.1:" + ports[1]}, []string{"EACCES"}},
		{"another port, by sending", []string{"fastopen", ports[1]}, []string{"EPERM", "EPERM"}},
		{"a port of its own", []string{"bind", "tcp", "127.0.0.1:0"}, []string{"EACCES"}},
		{"other sockets", []string{"syscalls",
			call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0),
			call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP),
			call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 0),
			call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM, 0)}, []string{"EPERM", "EPERM", "EPERM", "ok"}},
	} {
		if got := s.probeLines(network, row.args...); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	for _, row := range []struct{ network, kind, address, want string }{
		{"serve:39871", "bind", "127.0.0.1:39871", "ok"},
		{"serve:39871", "bind", "127.0.0.1:39872", "EACCES"},
		{"serve:39871", "connect", "127.0.0.1:" + ports[0], "EACCES"},
		{"serve:39871,loopback:" + ports[0], "connect", "127.0.0.1:" + ports[0], "ok"},
		{"serve:39871,loopback:" + ports[0], "connect", "127.0.0.1:" + ports[1], "EACCES"},
		{"serve:39871,loopback:" + ports[0], "bind", "127.0.0.1:39871", "ok"},
	} {
		if got := s.probeLines(row.network, row.kind, "tcp", row.address); !reflect.DeepEqual(got, []string{row.want}) {
			t.Errorf("%s, %s %s: %q, want %q", row.network, row.kind, row.address, got, row.want)
		}
	}
	if got := s.probeLines("open", "fastopen", ports[1]); got[0] == "EPERM" {
		t.Errorf("with an open network: %q; it must be the filter that refuses", got)
	}
}

func TestAbstractSocketsOfOthersAreClosedWhereTheKernelCan(t *testing.T) {
	s := container(t)
	name := fmt.Sprintf("@casewarden-test-%d", os.Getpid())
	listener, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	want := "EPERM"
	kernel, _ := s.hello.header["kernel"].(map[string]any)
	if abi, _ := kernel["landlock"].(float64); abi < landlockScopes {
		want = "ok"
	}
	for network, want := range map[string]string{"none": want, "loopback:9": want, "open": "ok"} {
		if got := s.probeLines(network, "connect", "unix", name); got[0] != want {
			t.Errorf("under %s: %s, want %s", network, got[0], want)
		}
	}
}

func TestASweepLeavesNothingOfWhatRan(t *testing.T) {
	s := container(t)
	for range 3 {
		s.run(program{argv: []string{s.probe, "daemon", "quiet"}})
	}
	s.start(program{argv: []string{"sh", "-c", "setsid sleep 100 & sleep 100"}})
	writable := []string{"/tmp", "/dev/shm", stateFolder}
	made := s.probeLines("none", append([]string{"litter"}, writable...)...)
	for i, result := range made {
		if result != "ok" && result != "true" && (i%3 != 2 || result != "EOPNOTSUPP") {
			t.Fatalf("the probe could not leave its litter: %q", made)
		}
	}
	m := s.sweep(stateFolder)
	if m.fault() != "ok" || m.number("left") != 0 || m.number("killed") < 5 {
		t.Fatalf("sweep: %v", m.header)
	}
	e := s.run(program{argv: []string{"sh", "-c", "ls -A /tmp /dev/shm " + stateFolder + "; cat /proc/sysvipc/*; ls /proc | grep -c '^[0-9]'"}})
	if !strings.HasPrefix(e.stdout, "/dev/shm:\n\n/srv:\n\n/tmp:\n") || strings.Contains(e.stdout, "4242") {
		t.Errorf("left behind:\n%s", e.stdout)
	}
	if lines := strings.Fields(e.stdout); lines[len(lines)-1] != "4" {
		t.Errorf("%s processes, want the shim, sh, ls and grep", lines[len(lines)-1])
	}
	if again := s.probeLines("none", append([]string{"litter"}, writable...)...); !reflect.DeepEqual(made, again) {
		t.Errorf("a second program finds other conditions: %q, then %q", made, again)
	}
	if m := s.sweep(); m.number("killed") != 0 || m.fault() != "ok" {
		t.Errorf("a second sweep: %v", m.header)
	}
}

func TestASweepEndsSessionsBeforeItAnswers(t *testing.T) {
	s := container(t)
	session := s.start(program{argv: []string{"sleep", "100"}})
	s.sweep()
	exits := 0
	for _, m := range s.events {
		if m.text("event") == "exit" && m.number("session") == session && m.number("signal") == 9 {
			exits++
		}
	}
	if exits != 1 {
		t.Errorf("events before the answer: %v", s.events)
	}
}

func TestAForkBombIsBoundedNamedAndGone(t *testing.T) {
	for name, argv := range map[string][]string{
		"gives up":              {"sh", "-c", "while :; do sleep 100 & done"},
		"goes on":               {inside + "/probe", "bomb"},
		"sessions of their own": {"sh", "-c", "trap '' TERM; while :; do setsid sleep 100 & done"},
	} {
		s := container(t)
		const limit = 24
		session := s.start(program{argv: argv, limits: map[string]any{"processes": limit, "output_bytes": 1 << 20}})
		most := int64(0)
		for stop := time.Now().Add(watchInterval); time.Now().Before(stop); {
			most = max(most, tasks(descendantsOf(t, s.process.Process.Pid)))
		}
		e := s.wait(session)
		if !e.exit.flag("process_limit") {
			t.Errorf("%s: exit %v", name, e.exit.header)
		}
		// The shim's threads are of the same uid and may be more by now than when the limit was set.
		if most < limit-4 || most > limit+taskSlack {
			t.Errorf("%s: %d tasks at most, the limit is %d", name, most, limit)
		}
		if m := s.sweep(); m.number("left") != 0 {
			t.Errorf("%s: sweep %v", name, m.header)
		}
		if rest := descendantsOf(t, s.process.Process.Pid); len(rest) != 0 {
			t.Errorf("%s: %d processes are left", name, len(rest))
		}
	}
}

func descendantsOf(t *testing.T, pid int) []process {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	return descendants(all, pid)
}

func TestAProgramAtItsLimitOfProcessesIsLeftAlone(t *testing.T) {
	s := container(t)
	e := s.run(program{argv: []string{"sh", "-c", "for i in 1 2 3 4 5 6 7; do sleep 1 & done; wait; echo done"}, limits: map[string]any{"processes": 8}})
	if e.stdout != "done\n" || e.exit.flag("process_limit") {
		t.Errorf("%q, %s, exit %v", e.stdout, e.stderr, e.exit.header)
	}
}

func TestLocallyOnlyDescendantsAreSwept(t *testing.T) {
	bystander := exec.Command("sleep", "100")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	kept := t.TempDir() + "/kept"
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	s := local(t)
	e := s.run(program{argv: []string{s.probe, "daemon", "quiet"}})
	daemon := "/proc/" + strings.TrimSpace(e.stdout)
	if _, err := os.Stat(daemon); err != nil {
		t.Fatalf("no daemon: %v", err)
	}
	s.run(program{argv: []string{"sh", "-c", "mkdir -p a/b; echo x > a/b/c; chmod 0 a/b"}, cwd: state})
	m := s.sweep(state)
	if m.number("killed") != 1 || m.number("left") != 0 || m.fault() != "ok" {
		t.Errorf("sweep: %v", m.header)
	}
	if _, err := os.Stat(daemon); err == nil {
		t.Error("the daemon lives")
	}
	if err := bystander.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("a process that is none of the shim's: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a file in the machine's temporary folder: %v", err)
	}
	if rest, err := os.ReadDir(state); err != nil || len(rest) != 0 {
		t.Errorf("the state folder holds %v, %v", rest, err)
	}
}

func TestLocallyAForkBombIsEndedToo(t *testing.T) {
	s := local(t)
	session := s.start(program{argv: []string{"sh", "-c", "i=0; while [ $i -lt 400 ]; do i=$((i+1)); setsid sleep 100 & done; wait"},
		limits: map[string]any{"processes": 24}})
	if e := s.wait(session); !e.exit.flag("process_limit") {
		t.Errorf("exit %v", e.exit.header)
	}
	if m := s.sweep(); m.number("left") != 0 {
		t.Errorf("sweep %v", m.header)
	}
	if rest := descendantsOf(t, s.process.Process.Pid); len(rest) != 0 {
		t.Errorf("%d processes are left", len(rest))
	}
}

func TestOutsideAContainerTheShimRefusesToRule(t *testing.T) {
	err := exec.Command(binaries+"/shim", "--dial", "/nonesuch").Run()
	if exit, is := err.(*exec.ExitError); !is || exit.ExitCode() != 2 {
		t.Errorf("ended with %v", err)
	}
}

func TestACopyCanBeExecutedAndNotRead(t *testing.T) {
	info, err := os.Stat(binaries + "/shim")
	if err != nil || info.Mode() != 0o111 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestWithoutASupervisorTheShimGivesUp(t *testing.T) {
	began := time.Now()
	err := exec.Command(binaries+"/shim", "--local", "--dial", "/nonesuch", "--retry", "0.3").Run()
	if exit, is := err.(*exec.ExitError); !is || exit.ExitCode() != 1 || time.Since(began) > 5*time.Second {
		t.Errorf("ended with %v after %v", err, time.Since(began))
	}
}
