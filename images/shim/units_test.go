package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"casewarden.dev/shim/internal/filter"
	"golang.org/x/sys/unix"
)

func TestRowsOfProcAreReadWhateverAProcessCallsItself(t *testing.T) {
	tail := " S 7 9 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 4711 1000 200 18446744073709551615"
	want := process{pid: 42, parent: 7, threads: 3, state: 'S', started: 4711}
	for _, name := range []string{"sh", "a b", "x) R 1 1", "((", ")"} {
		if got, ok := parseStat([]byte("42 (" + name + ")" + tail)); !ok || got != want {
			t.Errorf("%q: %+v %v", name, got, ok)
		}
	}
	for _, text := range []string{"", "42", "42 (sh", "42 (sh) S 7", "x (sh)" + tail, ")42(" + tail} {
		if got, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestDescendantsAreFoundThroughAllGenerationsAndLoopsEnd(t *testing.T) {
	all := []process{{pid: 1}, {pid: 2, parent: 1}, {pid: 3, parent: 2}, {pid: 4, parent: 3}, {pid: 5, parent: 1}, {pid: 6, parent: 7}, {pid: 7, parent: 6}}
	var got []int
	for _, p := range descendants(all, 2) {
		got = append(got, p.pid)
	}
	if !reflect.DeepEqual(got, []int{3, 4}) {
		t.Errorf("below 2 are %v", got)
	}
}

func TestOOMCountsAreReadFromBothCgroupVersions(t *testing.T) {
	for text, want := range map[string]int64{
		"low 0\nhigh 0\nmax 4\noom 1\noom_kill 2\noom_group_kill 0\n": 2,
		"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n":               7,
	} {
		if got, ok := parseOOM([]byte(text)); !ok || got != want {
			t.Errorf("%q: %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "oom 1\n", "oom_kill x\n"} {
		if _, ok := parseOOM([]byte(text)); ok {
			t.Errorf("%q was read", text)
		}
	}
	got := oomFiles("4:memory:/pod/x\n3:cpuset:/\n0::/unit\n")
	want := []string{"/sys/fs/cgroup/memory/pod/x/memory.oom_control", "/sys/fs/cgroup/unit/memory.events",
		"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("files are %q", got)
	}
}

func TestSystemVObjectsAreThoseOwnedOrMade(t *testing.T) {
	text := "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid\n" +
		"      4242          0   600           0          0     0     0  1000     0     0     0\n" +
		"      4243          5   600           0          0     0     0     0     0  1000     0\n" +
		"      4244          9   600           0          0     0     0  1001     0  1001     0\n"
	if got := parseIPC(text, "msqid", 1000); !reflect.DeepEqual(got, []int{0, 5}) {
		t.Errorf("got %v", got)
	}
	if got := parseIPC("something else\n1 2 3\n", "msqid", 1000); got != nil {
		t.Errorf("a list of another form: %v", got)
	}
}

func TestNetworksAreNamedExactly(t *testing.T) {
	for text, want := range map[string]struct {
		network   filter.Network
		port, own uint16
	}{
		"none": {filter.None, 0, 0}, "open": {filter.Open, 0, 0}, "loopback:8080": {filter.Stream, 8080, 0},
		"loopback:65535": {filter.Stream, 65535, 0}, "serve:80": {filter.Stream, 0, 80},
		"serve:80,loopback:81": {filter.Stream, 81, 80},
	} {
		network, port, own, err := parseNetwork(text)
		if err != nil || network != want.network || port != want.port || own != want.own {
			t.Errorf("%q: %v %d %d %v", text, network, port, own, err)
		}
	}
	for _, text := range []string{"", "None", "loopback", "loopback:", "loopback:0", "loopback:65536", "loopback:-1", "loopback:+1", "loopback:x",
		"serve:", "serve:0", "serve:1,", "serve:1,open", "serve:1,loopback:0", "serve:x,loopback:1", "loopback:1,serve:1"} {
		if _, _, _, err := parseNetwork(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestTheStatusOfAStartSaysWhoFailed(t *testing.T) {
	errno := []byte{byte(unix.ENOEXEC), 0, 0, 0}
	for name, row := range map[string]struct {
		record []byte
		want   *stageResult
	}{
		"runs":               {[]byte{stageReady}, nil},
		"died before":        {nil, &stageResult{}},
		"died between":       {[]byte{stageReady, stageFailed, 1}, &stageResult{}},
		"refused by exec":    {append([]byte{stageReady, stageFailed}, errno...), &stageResult{stageFailed, unix.ENOEXEC, ""}},
		"not found":          {append(append([]byte{stageFailed}, errno...), "why"...), &stageResult{stageFailed, unix.ENOEXEC, "why"}},
		"could not confine":  {append(append([]byte{stageBroken}, errno...), "why"...), &stageResult{stageBroken, unix.ENOEXEC, "why"}},
		"could not limit it": {append([]byte{stageReady, stageBroken}, errno...), &stageResult{stageBroken, unix.ENOEXEC, ""}},
	} {
		if got := parseStatus(row.record); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestFramesAreReadInOrderAndCutOnesAreErrors(t *testing.T) {
	stream := append(frame(map[string]any{"op": "write", "id": 1, "session": 2}, []byte("payload")), frame(map[string]any{"op": "exit", "id": 2}, nil)...)
	reader := bufio.NewReader(bytes.NewReader(stream))
	first, payload, err := readFrame(reader)
	if err != nil || first.Op != "write" || first.Session != 2 || string(payload) != "payload" {
		t.Errorf("%+v %q %v", first, payload, err)
	}
	if second, payload, err := readFrame(reader); err != nil || second.Op != "exit" || len(payload) != 0 {
		t.Errorf("%+v %q %v", second, payload, err)
	}
	if _, _, err := readFrame(reader); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for cut := 1; cut < len(stream)-1; cut++ {
		reader := bufio.NewReader(bytes.NewReader(stream[:cut]))
		var err error
		for err == nil {
			_, _, err = readFrame(reader)
		}
		var broken *wireError
		if errors.As(err, &broken) {
			t.Errorf("cut at %d: %v is no error of the peer's", cut, err)
		}
	}
}

func TestNullAndMissingFieldsMeanTheSame(t *testing.T) {
	var req request
	err := json.Unmarshal([]byte(`{"id":0,"op":"start","limits":{"processes":null,"file_bytes":1},"empty":null,"mode":null,"future":[1]}`), &req)
	if err != nil || req.ID == nil || req.Limits != (limits{FileBytes: 1}) || req.Empty != nil || req.Mode != nil {
		t.Errorf("%+v %v", req, err)
	}
}

func TestAFolderIsEmptiedWhateverIsInIt(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	keep := outside + "/keep"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(keep, []byte("keep"), 0o600))
	must(os.Symlink(outside, folder+"/link"))
	must(os.Symlink("nowhere", folder+"/dangling"))
	must(unix.Mkfifo(folder+"/pipe", 0o600))
	must(os.MkdirAll(folder+"/a/b/c", 0o755))
	must(os.Symlink(outside, folder+"/a/b/link"))
	must(os.Mkdir(folder+"/.moved-1", 0o755))
	must(os.WriteFile(folder+"/.moved-1/taken", nil, 0o400))
	for _, locked := range []string{"/a/b/c", "/a/b", "/a", "/.moved-1"} {
		must(os.Chmod(folder+locked, 0))
	}
	for i := range 3 * listBatch {
		must(os.WriteFile(filepath.Join(folder, strings.Repeat("n", 1+i%100)+string(rune('a'+i/100))), nil, 0))
	}
	must(emptyFolder(folder))
	if rest, err := os.ReadDir(folder); err != nil || len(rest) != 0 {
		t.Errorf("left: %v %v", rest, err)
	}
	if text, err := os.ReadFile(keep); err != nil || string(text) != "keep" {
		t.Errorf("what a link led to: %q %v", text, err)
	}
	must(os.Symlink(outside, folder+"/state"))
	if err := emptyFolder(folder + "/state"); err == nil {
		t.Error("a link in place of the folder was followed")
	}
	must(emptyFolder(folder + "/nonesuch"))
}

func TestNestingDoesNotUseUpDescriptors(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for depth := 0; err == nil && depth < 5000; depth++ {
		var next int
		if err = unix.Mkdirat(fd, "d", 0o700); err == nil {
			next, err = unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		}
		_ = unix.Close(fd)
		fd = next
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	if err := emptyFolder(root); err != nil {
		t.Error(err)
	}
	if rest, _ := os.ReadDir(root); len(rest) != 0 {
		t.Errorf("left: %v", rest)
	}
}

func TestFilesAreDescribedAndLinksNotFollowed(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a": "12345", "deep/b": ""} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	rows := func() map[string][]any {
		lines, refused := statFiles([]string{folder, folder + "/nothing"})
		if refused != nil {
			t.Fatal(refused)
		}
		found := map[string][]any{}
		for _, line := range bytes.Split(bytes.TrimSpace(lines), []byte("\n")) {
			var row []any
			if err := json.Unmarshal(line, &row); err != nil || len(row) != 5 {
				t.Fatalf("%q: %v", line, err)
			}
			found[strings.TrimPrefix(row[0].(string), folder)] = row[1:]
		}
		return found
	}
	before := rows()
	if len(before) != 5 || before["/a"][1] != 5.0 || before["/link"][3] != "/etc" || before["/deep/b"][1] != 0.0 {
		t.Fatalf("%v", before)
	}
	// The same size, and an old time put on it: only the inode's own time tells, as finely as the kernel's clock ticks.
	old, after := time.Unix(1, 0), before
	for start := time.Now(); reflect.DeepEqual(before["/a"], after["/a"]); after = rows() {
		if err := errors.Join(os.WriteFile(folder+"/a", []byte("54321"), 0o640), os.Chtimes(folder+"/a", old, old)); err != nil {
			t.Fatal(err)
		}
		if time.Since(start) > 10*time.Second {
			t.Fatalf("still %v", after["/a"])
		}
	}
	if !reflect.DeepEqual(before["/deep/b"], after["/deep/b"]) {
		t.Fatalf("%v, then %v", before, after)
	}
	if _, refused := statFiles([]string{"etc"}); refused == nil {
		t.Fatal("a relative path was taken")
	}
}
