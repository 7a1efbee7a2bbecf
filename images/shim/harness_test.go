package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests build the shim and the probe, and run the shim as PID 1 in namespaces of its own: /proc, /tmp, /dev/shm and
// /srv are new, the folder with the binaries and the socket is inside, the uid is one that nothing else has. The network
// is the machine's, so that what is refused is refused by the shim.
const (
	inside       = "/mnt" // where the test's folder is in the container
	stateFolder  = "/srv"
	initVariable = "SHIM_TEST_INIT"
	answerLimit  = 15 * time.Second
)

var (
	binaries string
	nextUID  atomic.Int64
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(initVariable); socket != "" {
		becomeInit(socket)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	nextUID.Store(int64(600000 + os.Getpid()%1000*100))
	folder, err := os.MkdirTemp("", "shim-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	binaries = folder
	if err := os.Chmod(folder, 0o755); err != nil {
		panic(err)
	}
	for output, source := range map[string]string{"built": ".", "probe": "./internal/probe"} {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(folder, output), source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("go build %s: %v\n%s", source, err, text))
		}
	}
	if text, err := exec.Command(filepath.Join(folder, "built"), "--copy", folder).CombinedOutput(); err != nil {
		panic(fmt.Sprintf("--copy: %v\n%s", err, text))
	}
	return m.Run()
}

// becomeInit runs in the new namespaces and turns into the shim.
func becomeInit(folder string) {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "test container:", err)
			os.Exit(99)
		}
	}
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(unix.Mount(folder, inside, "", unix.MS_BIND, ""))
	must(unix.Mount("proc", "/proc", "proc", 0, ""))
	for _, target := range []string{"/tmp", "/dev/shm", stateFolder} {
		must(unix.Mount("memory", target, "tmpfs", 0, "mode=0777,size=16m"))
	}
	unix.Umask(0o022)
	// Root without capabilities, where the tests are not run by root and so have one uid only.
	must(unix.Prctl(unix.PR_SET_SECUREBITS, 1, 0, 0, 0))
	if uid := os.Getenv("SHIM_TEST_UID"); uid != "" {
		var number int
		_, err := fmt.Sscan(uid, &number)
		must(err)
		must(syscall.Setgroups(nil))
		must(syscall.Setgid(number))
		must(syscall.Setuid(number))
	}
	argv := []string{"shim", "--dial", inside + "/" + os.Getenv("SHIM_TEST_SOCKET"), "--retry", "5"}
	must(unix.Exec(inside+"/"+os.Getenv("SHIM_TEST_BINARY"), argv, []string{}))
}

// supervisor is the other side of a shim.
type supervisor struct {
	t       *testing.T
	process *exec.Cmd
	conn    net.Conn
	reader  *bufio.Reader
	hello   message
	lastID  int
	events  []message // those that came while an answer was awaited
	probe   string    // the probe's path as the shim sees it
}

type message struct {
	header  map[string]any
	payload []byte
}

func (m message) number(name string) int  { n, _ := m.header[name].(float64); return int(n) }
func (m message) text(name string) string { s, _ := m.header[name].(string); return s }
func (m message) flag(name string) bool   { b, _ := m.header[name].(bool); return b }

// fault returns party and reason of an answer, or "ok".
func (m message) fault() string {
	if m.flag("ok") {
		return "ok"
	}
	detail, _ := m.header["error"].(map[string]any)
	return fmt.Sprintf("%v %v", detail["party"], detail["reason"])
}

func listen(t *testing.T) (*net.UnixListener, string) {
	t.Helper()
	file, err := os.CreateTemp(binaries, "socket-")
	if err != nil {
		t.Fatal(err)
	}
	name := file.Name()
	_ = file.Close()
	_ = os.Remove(name)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener, name
}

// container starts the shim as PID 1, from a copy as a pod has it.
func container(t *testing.T) *supervisor {
	t.Helper()
	return containerOf(t, "shim")
}

func containerOf(t *testing.T, binary string) *supervisor {
	t.Helper()
	listener, name := listen(t)
	command := exec.Command("/proc/self/exe")
	command.Env = []string{initVariable + "=" + binaries, "SHIM_TEST_SOCKET=" + filepath.Base(name), "SHIM_TEST_BINARY=" + binary}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL,
	}
	if os.Geteuid() == 0 {
		command.Env = append(command.Env, fmt.Sprintf("SHIM_TEST_UID=%d", nextUID.Add(1)))
	} else {
		command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return accept(t, listener, command, inside+"/probe")
}

// local starts the shim with --local.
func local(t *testing.T) *supervisor {
	t.Helper()
	listener, name := listen(t)
	return accept(t, listener, exec.Command(binaries+"/shim", "--local", "--dial", name), binaries+"/probe")
}

func accept(t *testing.T, listener *net.UnixListener, command *exec.Cmd, probe string) *supervisor {
	t.Helper()
	dependOnSources(t)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start the shim: %v", err)
	}
	s := &supervisor{t: t, process: command, probe: probe}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	_ = listener.SetDeadline(time.Now().Add(answerLimit))
	conn, err := listener.Accept()
	if err != nil {
		t.Fatalf("the shim did not dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn, s.reader = conn, bufio.NewReader(conn)
	s.hello = s.receive()
	return s
}

// dependOnSources looks at the files that the binaries were built from: go test then knows that a result in its cache is
// stale when one of them changes, though the test binary itself does not hold them.
func dependOnSources(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"*.go", "internal/*/*.go", "internal/*/*.s", "go.sum"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("no sources %s: %v", pattern, err)
		}
		for _, name := range names {
			if _, err := os.Stat(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func frame(header map[string]any, payload []byte) []byte {
	if len(payload) > 0 {
		header["n"] = len(payload)
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), payload...)
}

func (s *supervisor) post(header map[string]any, payload []byte) int {
	s.t.Helper()
	s.lastID++
	header["id"] = s.lastID
	if _, err := s.conn.Write(frame(header, payload)); err != nil {
		s.t.Fatalf("cannot send: %v", err)
	}
	return s.lastID
}

func (s *supervisor) receive() message {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(answerLimit))
	var length [4]byte
	if _, err := io.ReadFull(s.reader, length[:]); err != nil {
		s.t.Fatalf("no frame: %v", err)
	}
	text := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(s.reader, text); err != nil {
		s.t.Fatalf("half a frame: %v", err)
	}
	m := message{}
	if err := json.Unmarshal(text, &m.header); err != nil {
		s.t.Fatalf("header %q: %v", text, err)
	}
	m.payload = make([]byte, m.number("n"))
	if _, err := io.ReadFull(s.reader, m.payload); err != nil {
		s.t.Fatalf("half a payload: %v", err)
	}
	return m
}

func (s *supervisor) answer(id int) message {
	s.t.Helper()
	for {
		m := s.receive()
		if m.text("event") == "" && m.number("id") == id {
			return m
		}
		s.events = append(s.events, m)
	}
}

func (s *supervisor) ask(header map[string]any, payload []byte) message {
	s.t.Helper()
	return s.answer(s.post(header, payload))
}

// program describes a start; zero values are what most tests want.
type program struct {
	argv    []string
	env     map[string]string
	cwd     string
	network string
	limits  map[string]any
}

func (p program) header() map[string]any {
	if p.network == "" {
		p.network = "none"
	}
	if p.cwd == "" {
		p.cwd = "/tmp"
	}
	if p.env == nil {
		p.env = map[string]string{"PATH": "/usr/bin:/bin"}
	}
	return map[string]any{"op": "start", "argv": p.argv, "env": p.env, "cwd": p.cwd, "network": p.network, "limits": p.limits}
}

func (s *supervisor) start(p program) int {
	s.t.Helper()
	m := s.ask(p.header(), nil)
	if !m.flag("ok") {
		s.t.Fatalf("start %q: %v", p.argv, m.header["error"])
	}
	return m.number("session")
}

// ended is what a session came to.
type ended struct {
	stdout, stderr string
	exit           message
	eofs           int
}

// wait collects a session's events up to its exit.
func (s *supervisor) wait(session int) ended {
	s.t.Helper()
	var e ended
	pending := s.events
	s.events = nil
	for {
		var m message
		if len(pending) > 0 {
			m, pending = pending[0], pending[1:]
		} else {
			m = s.receive()
		}
		switch {
		case m.number("session") != session || m.text("event") == "":
			s.events = append(s.events, m)
		case m.text("event") == "exit":
			e.exit = m
			s.events = append(s.events, pending...)
			return e
		case m.flag("eof"):
			e.eofs++
		case m.text("stream") == "stdout":
			e.stdout += string(m.payload)
		default:
			e.stderr += string(m.payload)
		}
	}
}

func (s *supervisor) run(p program) ended {
	s.t.Helper()
	return s.wait(s.start(p))
}

// probeLines runs a verb of the probe and returns the lines that it prints.
func (s *supervisor) probeLines(network string, args ...string) []string {
	s.t.Helper()
	e := s.run(program{argv: append([]string{s.probe}, args...), network: network})
	if e.exit.number("code") != 0 || e.exit.header["signal"] != nil {
		s.t.Fatalf("probe %q: %v %s", args, e.exit.header, e.stderr)
	}
	return strings.Split(strings.TrimSuffix(e.stdout, "\n"), "\n")
}

func (s *supervisor) sweep(empty ...string) message {
	s.t.Helper()
	return s.ask(map[string]any{"op": "sweep", "empty": empty}, nil)
}

// over waits for the shim's own end and returns its exit code.
func (s *supervisor) over() int {
	s.t.Helper()
	code := make(chan int, 1)
	go func() {
		_ = s.process.Wait()
		code <- s.process.ProcessState.ExitCode()
	}()
	select {
	case c := <-code:
		return c
	case <-time.After(answerLimit):
		s.t.Fatal("the shim did not end")
		return -1
	}
}
