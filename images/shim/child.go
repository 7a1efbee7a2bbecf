package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"casewarden.dev/shim/internal/filter"
)

// The second stage of a start: the shim executes itself with stageFlag, takes limits and filters upon itself, and turns
// into the foreign program. Between fork and exec a Go process can do none of that.
const (
	stageFlag   = "--exec-child"
	stageConfig = 3 // read to its end and closed before the program runs
	stageStatus = 4 // close-on-exec: its end without stageFailed is the success
)

// Bytes on the status pipe. A failure is followed by 4 bytes of errno (native order) and, from all but the last step, a text.
const (
	stageReady  = 'R'
	stageFailed = 'F'
	stageBroken = 'B'
)

const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// stageResult is what the shim reads of a stage that did not become its program; kind 0 is one that died on the way.
type stageResult struct {
	kind  byte
	errno unix.Errno
	text  string
}

// parseStatus reads the status pipe; nil is a program that runs.
func parseStatus(record []byte) *stageResult {
	if len(record) == 1 && record[0] == stageReady {
		return nil
	}
	if len(record) > 0 && record[0] == stageReady {
		record = record[1:]
	}
	if len(record) < 5 {
		return &stageResult{}
	}
	return &stageResult{record[0], unix.Errno(binary.NativeEndian.Uint32(record[1:5])), string(record[5:])}
}

func (r *stageResult) message(argv []string) string {
	if r.text != "" {
		return r.text
	}
	hint := ""
	switch r.errno {
	case unix.ENOEXEC:
		hint = "; it is no program of this machine's kind and has no #! line"
	case unix.ENOENT:
		hint = "; the file is there, so its interpreter or loader is missing"
	}
	return fmt.Sprintf("%q cannot be executed: %v%s", argv[0], r.errno, hint)
}

// stage is what the second stage is told.
type stage struct {
	Argv    []string
	Env     []string
	Cwd     string
	Network filter.Network
	Port    uint16 // the one TCP port that it may connect to
	Own     uint16 // the one TCP port that it may listen on
	ABI     int
	Limits  limits
	// Tasks is the RLIMIT_NPROC to set; 0 for none.
	Tasks uint64
}

// runStage never returns.
func runStage() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.CloseOnExec(stageStatus)
	config := os.NewFile(stageConfig, "config")
	text, err := io.ReadAll(config)
	_ = config.Close()
	var s stage
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		tell(stageBroken, 0, "configuration: "+err.Error())
	}
	if err := os.Chdir(s.Cwd); err != nil {
		tell(stageBroken, 0, err.Error())
	}
	path, err := lookPath(s.Argv[0], s.Env)
	if err != nil {
		var errno unix.Errno
		errors.As(err, &errno)
		tell(stageFailed, errno, err.Error())
	}
	if err := s.confine(); err != nil {
		tell(stageBroken, 0, err.Error())
	}
	s.become(path)
}

func tell(kind byte, errno unix.Errno, text string) {
	record := binary.NativeEndian.AppendUint32([]byte{kind}, uint32(errno))
	_, _ = unix.Write(stageStatus, append(record, text...))
	os.Exit(127)
}

// confine applies everything but RLIMIT_NPROC.
func (s *stage) confine() error {
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
		set      bool
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0, true},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, uint64(s.Limits.FileBytes), s.Limits.FileBytes > 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, uint64(s.Limits.OpenFiles), s.Limits.OpenFiles > 0},
	} {
		if !limit.set {
			continue
		}
		value := clamp(limit.resource, limit.value)
		if err := unix.Setrlimit(limit.resource, &value); err != nil {
			return fmt.Errorf("%s: %w", limit.name, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if s.Network != filter.Open {
		if err := landlockRestrict(s.Port, s.Own, s.ABI); err != nil {
			return err
		}
	}
	if err := filter.Install(s.Network); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// clamp keeps a wish within the hard limit that the container has already.
func clamp(resource int, wish uint64) unix.Rlimit {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err == nil && now.Max < wish {
		wish = now.Max
	}
	return unix.Rlimit{Cur: wish, Max: wish}
}

// become executes the program. From RLIMIT_NPROC on it makes raw system calls only: the runtime may start no thread
// under a limit that counts the shim's threads too.
func (s *stage) become(path string) {
	path0, err := unix.BytePtrFromString(path)
	argv, err1 := syscall.SlicePtrFromStrings(s.Argv)
	env, err2 := syscall.SlicePtrFromStrings(s.Env)
	if err := errors.Join(err, err1, err2); err != nil {
		tell(stageFailed, unix.EINVAL, err.Error())
	}
	tasks := clamp(unix.RLIMIT_NPROC, s.Tasks)
	record := []byte{stageReady, stageFailed, 0, 0, 0, 0}
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, stageStatus, uintptr(unsafe.Pointer(&record[0])), 1)
	if errno == 0 && s.Tasks > 0 {
		_, _, errno = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, uintptr(unsafe.Pointer(&tasks)), 0, 0, 0)
		if errno != 0 {
			record[1] = stageBroken
		}
	}
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path0)),
			uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	}
	binary.NativeEndian.PutUint32(record[2:], uint32(errno))
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, stageStatus, uintptr(unsafe.Pointer(&record[1])), 5)
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

// lookPath finds argv[0] as execvp does, in the PATH that the program is given.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	search := defaultPath
	for _, entry := range env {
		if value, found := strings.CutPrefix(entry, "PATH="); found {
			search = value
		}
	}
	err := fmt.Errorf("%q is not in PATH %q: %w", name, search, unix.ENOENT)
	for _, folder := range filepath.SplitList(search) {
		if folder == "" {
			folder = "."
		}
		path := folder + "/" + name
		switch found := executable(path); {
		case found == nil:
			return path, nil
		case errors.Is(found, unix.EACCES):
			err = found
		}
	}
	return "", err
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%q is a folder: %w", path, unix.EACCES)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%q is not executable: %w", path, err)
	}
	return nil
}
