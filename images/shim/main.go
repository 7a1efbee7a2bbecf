// The shim is the boundary between the evaluation and a foreign program: PID 1 of the candidate and environment
// containers. It dials its supervisor once, before any foreign byte runs, and then starts, feeds, signals, kills, sweeps,
// and moves files at its word. It holds no secret and decides nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"casewarden.dev/shim/internal/filter"
)

const (
	dialPause     = 20 * time.Millisecond
	goodbyeLimit  = 2 * time.Second
	signalledCode = 128
)

type options struct {
	dial  string
	retry float64
	local bool
	copy  string
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == stageFlag {
		runStage()
	}
	var o options
	flag.StringVar(&o.dial, "dial", "", "unix socket of the supervisor")
	flag.Float64Var(&o.retry, "retry", 60, "seconds to wait for the socket")
	flag.BoolVar(&o.local, "local", false, "no container is around: rule over own descendants only")
	flag.StringVar(&o.copy, "copy", "", "copy this program to DIR/shim and exit")
	flag.Parse()
	code, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "shim: %v\n", err)
	}
	os.Exit(code)
}

func run(o options) (int, error) {
	switch {
	case flag.NArg() > 0:
		return 2, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case o.copy != "":
		return outcome(copySelf(o.copy))
	case o.dial == "":
		return 2, errors.New("give --dial PATH or --copy DIR")
	case !o.local && os.Getpid() != 1:
		// The sweep of a container is kill(-1).
		return 2, fmt.Errorf("pid is %d: without --local the shim must be PID 1 of a container", os.Getpid())
	}
	executable, err := harden(o.local)
	if err != nil {
		return 1, err
	}
	s := &server{
		realm:      realm{local: o.local},
		kernel:     kernel{Seccomp: filter.Available(), Landlock: landlockABI()},
		executable: executable,
		reaper:     &reaper{children: map[int]*child{}},
	}
	s.handleSignals()
	conn, err := dial(o.dial, time.Duration(o.retry*float64(time.Second)))
	if err != nil {
		return 1, err
	}
	s.link = &link{conn: conn}
	go s.watch()
	err = s.serve(conn)
	_, _, _ = s.realm.purge(s.reaper.reap, goodbyeLimit)
	return outcome(err)
}

func outcome(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// harden closes the shim to the programs that will run beside it under its uid, and returns a descriptor of its own file.
func harden(local bool) (int, error) {
	// Locally children are told to die with the thread that made them: it must be one that lives as long as the shim.
	runtime.LockOSThread()
	runtime.GOMAXPROCS(2)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) {
		return -1, fmt.Errorf("close_range: %w", err)
	}
	if local {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return -1, fmt.Errorf("PR_SET_CHILD_SUBREAPER: %w", err)
		}
	}
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot open the shim's own file: %w", err)
	}
	defer unix.Close(fd)
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, executableFD)
}

// handleSignals catches everything: a program of the same uid may send PID 1 any signal, and none but SIGTERM counts.
// Handlers, unlike SIG_IGN, are not inherited by programs.
func (s *server) handleSignals() {
	children, ends, rest := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(rest)
	signal.Notify(children, unix.SIGCHLD)
	signal.Notify(ends, unix.SIGTERM)
	if s.realm.local {
		signal.Notify(ends, unix.SIGINT, unix.SIGHUP)
	}
	go func() {
		for {
			select {
			case <-children:
				s.reaper.reap()
			case got := <-ends:
				_, _, _ = s.realm.purge(s.reaper.reap, goodbyeLimit)
				os.Exit(signalledCode + int(got.(unix.Signal)))
			}
		}
	}()
}

func dial(path string, patience time.Duration) (net.Conn, error) {
	deadline := time.Now().Add(patience)
	for {
		conn, err := net.DialTimeout("unix", path, max(patience, time.Second))
		if err == nil {
			return conn, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no supervisor at %q within %v: %w", path, patience, err)
		}
		time.Sleep(dialPause)
	}
}

// copySelf installs the shim where other containers find it. Execute-only: the kernel then makes it undumpable from its
// first instruction for everybody but the owner.
func copySelf(folder string) error {
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.CreateTemp(folder, ".shim-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	err = errors.Join(err, target.Chmod(fs.FileMode(0o111)), target.Close())
	if err == nil {
		err = os.Rename(target.Name(), filepath.Join(folder, "shim"))
	}
	if err != nil {
		_ = os.Remove(target.Name())
	}
	return err
}
