package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheShimIntroducesItself(t *testing.T) {
	s := container(t)
	if s.hello.text("event") != "hello" || s.hello.number("v") != 1 || s.hello.number("pid") != 1 {
		t.Errorf("hello is %v", s.hello.header)
	}
	kernel, _ := s.hello.header["kernel"].(map[string]any)
	if kernel["seccomp"] != true {
		t.Errorf("kernel is %v", kernel)
	}
}

func TestAProgramIsFedAndHeard(t *testing.T) {
	s := container(t)
	session := s.start(program{argv: []string{"sh", "-c", "cat; echo complaint >&2; exit 3"}})
	for _, line := range []string{"one\n", "two\n"} {
		if m := s.ask(map[string]any{"op": "write", "session": session}, []byte(line)); !m.flag("ok") {
			t.Fatalf("write: %v", m.header)
		}
	}
	s.ask(map[string]any{"op": "close_stdin", "session": session}, nil)
	e := s.wait(session)
	if e.stdout != "one\ntwo\n" || e.stderr != "complaint\n" || e.eofs != 2 {
		t.Errorf("got %q, %q, %d ends of streams", e.stdout, e.stderr, e.eofs)
	}
	if e.exit.number("code") != 3 || e.exit.header["signal"] != nil {
		t.Errorf("exit is %v", e.exit.header)
	}
	for _, name := range []string{"oom", "output_limit", "process_limit"} {
		if value, there := e.exit.header[name]; value != false || !there {
			t.Errorf("%s is %v", name, value)
		}
	}
	if seconds := e.exit.header["seconds"].(float64); seconds <= 0 || seconds > 10 {
		t.Errorf("seconds is %v", seconds)
	}
}

func TestASignalReachesTheWholeGroupAndIsReported(t *testing.T) {
	s := container(t)
	session := s.start(program{argv: []string{"sh", "-c", "sleep 100 & sleep 100"}})
	m := s.ask(map[string]any{"op": "signal", "session": session, "signal": 15}, nil)
	e := s.wait(session)
	if !m.flag("delivered") || e.exit.number("signal") != 15 || e.exit.header["code"] != nil {
		t.Errorf("answer %v, exit %v", m.header, e.exit.header)
	}
	if swept := s.sweep(); swept.number("killed") != 0 {
		t.Errorf("the group outlived the signal: %v", swept.header)
	}
	if m := s.ask(map[string]any{"op": "signal", "session": session, "signal": 9}, nil); !m.flag("ok") || m.flag("delivered") {
		t.Errorf("a signal to an ended session: %v", m.header)
	}
}

func TestAProgramHasItsEnvironmentFolderAndSessionAndNothingElse(t *testing.T) {
	s := container(t)
	e := s.run(program{argv: []string{s.probe, "identity"}, cwd: stateFolder, env: map[string]string{"B": "2", "A": "1 x"}})
	want := "own session true own group true\ntty ENXIO\nNoNewPrivs: 1\nSeccomp: 2\ncwd " + stateFolder + "\nenv A=1 x B=2\n"
	if e.stdout != want {
		t.Errorf("got\n%swant\n%s", e.stdout, want)
	}
	if got := s.probeLines("none", "fds"); !reflect.DeepEqual(got, []string{"0=pipe 1=pipe 2=pipe"}) {
		t.Errorf("descriptors %q", got)
	}
}

func TestWhatCannotBeStartedIsTheCandidatesAndWhatCannotBePreparedIsNot(t *testing.T) {
	s := container(t)
	for path, content := range map[string]string{"/tmp/plain": "hello", "/tmp/orphan": "#!/nonesuch\n", "/tmp/noexec": "hello"} {
		mode := 0o755
		if path == "/tmp/plain" {
			mode = 0o644
		}
		if m := s.ask(map[string]any{"op": "put", "path": path, "mode": mode}, []byte(content)); !m.flag("ok") {
			t.Fatal(m.header)
		}
	}
	const candidate, environment = "candidate CannotStartProgram", "environment EnvironmentFailed"
	for _, row := range []struct {
		name    string
		program program
		want    string
	}{
		{"not in PATH", program{argv: []string{"nonesuch"}}, candidate},
		{"no such file", program{argv: []string{"/nonesuch"}}, candidate},
		{"not executable", program{argv: []string{"/tmp/plain"}}, candidate},
		{"a folder", program{argv: []string{"/tmp"}}, candidate},
		{"no program format", program{argv: []string{"/tmp/noexec"}}, candidate},
		{"interpreter missing", program{argv: []string{"./orphan"}}, candidate},
		{"empty argv", program{argv: []string{}}, candidate},
		{"empty name", program{argv: []string{""}}, candidate},
		{"zero byte", program{argv: []string{"sh", "a\x00b"}}, candidate},
		{"bad environment name", program{argv: []string{"sh"}, env: map[string]string{"A=B": "c"}}, candidate},
		{"argument too long", program{argv: []string{"sh", strings.Repeat("x", 200000)}}, candidate},
		{"unknown network", program{argv: []string{"sh"}, network: "some"}, environment},
		{"port out of range", program{argv: []string{"sh"}, network: "loopback:70000"}, environment},
		{"folder missing", program{argv: []string{"sh"}, cwd: "/nonesuch"}, environment},
	} {
		m := s.ask(row.program.header(), nil)
		if m.fault() != row.want {
			t.Errorf("%s: %v", row.name, m.header)
		}
	}
	if e := s.run(program{argv: []string{"true"}}); e.exit.number("code") != 0 {
		t.Errorf("a program after the refused ones: %v", e.exit.header)
	}
}

func TestLimitsAreSetAndCores(t *testing.T) {
	s := container(t)
	e := s.run(program{argv: []string{s.probe, "limits"}, limits: map[string]any{"file_bytes": 4096, "open_files": 64}})
	if e.stdout != "4096 4096\n64 64\n0 0\n" {
		t.Errorf("limits are %q", e.stdout)
	}
	e = s.run(program{argv: []string{"dd", "if=/dev/zero", "of=/tmp/big", "bs=8192", "count=1"}, limits: map[string]any{"file_bytes": 4096}})
	if e.exit.number("signal") != 25 {
		t.Errorf("a file over its limit: %v %s", e.exit.header, e.stderr)
	}
}

func TestEveryByteArrivesAndASlowSupervisorHoldsTheProgramUp(t *testing.T) {
	s := container(t)
	const size = 4 << 20
	session := s.start(program{argv: []string{s.probe, "flood", fmt.Sprint(size)}})
	time.Sleep(300 * time.Millisecond)
	if s.reader.Buffered() == 0 {
		if _, err := s.reader.Peek(1); err != nil {
			t.Fatal(err)
		}
	}
	if m := s.ask(map[string]any{"op": "signal", "session": session, "signal": 0}, nil); !m.flag("delivered") {
		t.Error("the program ended before its output was read")
	}
	e := s.wait(session)
	if len(e.stdout) != size || e.exit.number("code") != 0 {
		t.Fatalf("%d bytes, exit %v", len(e.stdout), e.exit.header)
	}
	want := make([]byte, 0, size+10007)
	for len(want) < size {
		for i := range 10007 {
			want = append(want, byte('a'+i%26))
		}
	}
	if e.stdout != string(want[:size]) {
		t.Error("the bytes are not those that were written")
	}
}

func TestAProgramOverItsOutputIsKilled(t *testing.T) {
	s := container(t)
	const limit = 1 << 20
	e := s.run(program{argv: []string{s.probe, "flood", fmt.Sprint(64 << 20)}, limits: map[string]any{"output_bytes": limit}})
	if !e.exit.flag("output_limit") || e.exit.number("signal") != 9 {
		t.Errorf("exit %v", e.exit.header)
	}
	if len(e.stdout) < limit || len(e.stdout) > limit+3*chunkBytes {
		t.Errorf("%d bytes came through a limit of %d", len(e.stdout), limit)
	}
	e = s.run(program{argv: []string{s.probe, "flood", fmt.Sprint(limit)}, limits: map[string]any{"output_bytes": limit}})
	if e.exit.flag("output_limit") || len(e.stdout) != limit {
		t.Errorf("output of exactly the limit: %d bytes, exit %v", len(e.stdout), e.exit.header)
	}
}

func TestOutputOfAProgramThatLeavesADaemonOnItsPipesIsWholeAndBounded(t *testing.T) {
	s := container(t)
	began := time.Now()
	e := s.run(program{argv: []string{"sh", "-c", "head -c 60000 /dev/zero; " + s.probe + " daemon hold"}})
	if took := time.Since(began); took > 3*time.Second || took < drainGrace {
		t.Errorf("the exit took %v", took)
	}
	if zeros := strings.Count(e.stdout, "\x00"); zeros != 60000 || e.eofs != 2 || e.exit.number("code") != 0 {
		t.Errorf("%d bytes, %d ends of streams, exit %v", zeros, e.eofs, e.exit.header)
	}
	if m := s.sweep(); m.number("killed") != 1 || m.number("left") != 0 {
		t.Errorf("sweep %v", m.header)
	}
}

func TestAProgramThatDoesNotReadHoldsUpNothingElse(t *testing.T) {
	s := container(t)
	session := s.start(program{argv: []string{"sleep", "100"}})
	write := s.post(map[string]any{"op": "write", "session": session}, make([]byte, 1<<20))
	if e := s.run(program{argv: []string{"echo", "hi"}}); e.stdout != "hi\n" {
		t.Errorf("a second program: %q", e.stdout)
	}
	s.ask(map[string]any{"op": "signal", "session": session, "signal": 9}, nil)
	index := -1
	if e := s.wait(session); e.exit.number("signal") != 9 {
		t.Errorf("exit %v", e.exit.header)
	}
	if index = slices.IndexFunc(s.events, func(m message) bool { return m.number("id") == write }); index < 0 {
		s.events = append(s.events, s.answer(write))
		index = len(s.events) - 1
	}
	if s.events[index].fault() != "candidate Exited" {
		t.Errorf("the write that was never read: %v", s.events[index].header)
	}
	for _, op := range []string{"write", "close_stdin"} {
		m := s.ask(map[string]any{"op": op, "session": session}, nil)
		if op == "write" && m.fault() != "candidate Exited" {
			t.Errorf("%s after the end: %v", op, m.header)
		}
	}
}

func TestAProgramThatClosesItsInputRefusesMore(t *testing.T) {
	s := container(t)
	session := s.start(program{argv: []string{"sh", "-c", "exec <&-; echo closed; sleep 100"}})
	for closed := false; !closed; {
		m := s.receive()
		closed = strings.Contains(string(m.payload), "closed")
	}
	if m := s.ask(map[string]any{"op": "write", "session": session}, []byte("x")); m.fault() != "candidate Exited" {
		t.Errorf("write: %v", m.header)
	}
	if m := s.sweep(); m.number("killed") < 1 || m.number("left") != 0 {
		t.Errorf("sweep: %v", m.header)
	}
}

func TestAWriteDoesNotWaitForWhatAProgramLeftOnItsInput(t *testing.T) {
	s := container(t)
	session := s.start(program{argv: []string{"sh", "-c", "exec 3<&0; setsid sleep 100 <&3 >/dev/null 2>&1 & sleep 0.3"}})
	write := s.post(map[string]any{"op": "write", "session": session}, make([]byte, 1<<20))
	if m := s.answer(write); m.fault() != "candidate Exited" {
		t.Errorf("write: %v", m.header)
	}
	if m := s.sweep(); m.number("killed") != 1 {
		t.Errorf("sweep: %v", m.header)
	}
}

func TestFilesAreMovedWholeAndOnlyFiles(t *testing.T) {
	s := container(t)
	big := []byte(strings.Repeat("0123456789abcdef", 512<<10))
	sum := sha256.Sum256(big)
	m := s.ask(map[string]any{"op": "put", "path": "/tmp/a/b/c", "mode": 0o750}, big)
	if m.text("sha256") != hex.EncodeToString(sum[:]) {
		t.Fatalf("put: %v", m.header)
	}
	if m := s.ask(map[string]any{"op": "get", "path": "/tmp/a/b/c", "max": len(big)}, nil); string(m.payload) != string(big) {
		t.Errorf("get: %v, %d bytes", m.header, len(m.payload))
	}
	e := s.run(program{argv: []string{"sh", "-c", "stat -c %a /tmp/a/b/c; ls -A /tmp/a/b; ln -s c /tmp/a/b/link; mkfifo /tmp/a/b/pipe; : > /tmp/a/b/empty"}})
	if e.stdout != "750\nc\n" {
		t.Errorf("the folder shows %q", e.stdout)
	}
	for _, row := range []struct {
		name, path string
		max        int
		want       string
	}{
		{"larger than allowed", "/tmp/a/b/c", len(big) - 1, "candidate Protocol"},
		{"a link", "/tmp/a/b/link", 1 << 24, "candidate Protocol"},
		{"a pipe", "/tmp/a/b/pipe", 1 << 24, "candidate Protocol"},
		{"a folder", "/tmp/a", 1 << 24, "candidate Protocol"},
		{"a device", "/dev/zero", 1 << 24, "candidate Protocol"},
		{"missing", "/tmp/nonesuch", 1 << 24, "candidate Protocol"},
		{"relative", "tmp/a", 1 << 24, "environment EnvironmentFailed"},
		{"empty", "/tmp/a/b/empty", 0, "ok"},
	} {
		if m := s.ask(map[string]any{"op": "get", "path": row.path, "max": row.max}, nil); m.fault() != row.want {
			t.Errorf("get of %s: %v", row.name, m.header)
		}
	}
	if m := s.ask(map[string]any{"op": "put", "path": "/tmp/full"}, make([]byte, 20<<20)); m.fault() != "candidate StorageLimit" {
		t.Errorf("put into a full folder: %v", m.header)
	}
	if m := s.ask(map[string]any{"op": "put", "path": "/proc/x"}, []byte("x")); m.fault() != "environment EnvironmentFailed" {
		t.Errorf("put where nothing can be: %v", m.header)
	}
}

func TestRequestsThatMakeNoSenseAreRefusedAndHarmless(t *testing.T) {
	s := container(t)
	for _, header := range []map[string]any{
		{"op": "explode"}, {"op": "write", "session": 7}, {"op": "signal", "session": 0}, {"op": "signal", "session": -1},
	} {
		if m := s.ask(header, nil); m.fault() != "environment EnvironmentFailed" {
			t.Errorf("%v: %v", header, m.header)
		}
	}
	text := frame(map[string]any{"op": "start", "id": 99, "argv": []string{"echo", "slow"}, "env": map[string]string{}, "cwd": "/", "network": "none"}, nil)
	for _, b := range text {
		if _, err := s.conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.wait(s.answer(99).number("session")); e.stdout != "slow\n" {
		t.Errorf("a frame byte by byte: %q", e.stdout)
	}
}

func TestAFrameThatIsNoneEndsTheShim(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"oversize header": {0x7f, 0xff, 0xff, 0xff},
		"no header":       {0, 0, 0, 0},
		"no JSON":         append([]byte{0, 0, 0, 4}, "nope"...),
		"negative size":   append([]byte{0, 0, 0, 8}, `{"n":-1}`...),
		"huge payload":    append([]byte{0, 0, 0, 16}, `{"n":9999999999}`...),
	} {
		s := container(t)
		if _, err := s.conn.Write(bytes); err != nil {
			t.Fatal(err)
		}
		if code := s.over(); code != 1 {
			t.Errorf("%s: the shim ended with %d", name, code)
		}
	}
}

func TestTheShimEndsWithItsSupervisor(t *testing.T) {
	for name, end := range map[string]struct {
		act  func(*supervisor)
		code int
	}{
		"connection closed": {func(s *supervisor) { _ = s.conn.Close() }, 0},
		"asked to exit":     {func(s *supervisor) { s.ask(map[string]any{"op": "exit"}, nil) }, 0},
		"terminated":        {func(s *supervisor) { _ = s.process.Process.Signal(syscall.SIGTERM) }, 143},
	} {
		for where, begin := range map[string]func(*testing.T) *supervisor{"container": container, "local": local} {
			s := begin(t)
			e := s.run(program{argv: []string{s.probe, "daemon", "quiet"}})
			s.start(program{argv: []string{"sleep", "100"}})
			end.act(s)
			if code := s.over(); code != end.code {
				t.Errorf("%s, %s: code %d", name, where, code)
			}
			if where == "local" {
				if _, err := os.Stat("/proc/" + strings.TrimSpace(e.stdout)); err == nil {
					t.Errorf("%s: the daemon %s outlived the shim", name, strings.TrimSpace(e.stdout))
				}
			}
		}
	}
}
