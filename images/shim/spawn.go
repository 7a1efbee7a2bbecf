package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"casewarden.dev/shim/internal/filter"
)

const (
	// From fork to the program's first instruction; the machine may be busy, a healthy start takes milliseconds.
	startLimit = 20 * time.Second
	// RLIMIT_NPROC lies this far above the limit of processes, so that the watcher sees and names a breach.
	taskSlack = 4
	// Locally the limit counts everything of the user's, which comes and goes.
	localTaskSlack = 128
	// Above every number that the stage is given, so that none is laid over it before it is executed.
	executableFD = 100
)

// parseNetwork reads "none", "open", "loopback:PORT", "serve:PORT" or "serve:PORT,loopback:PORT". It returns the port to
// connect to and the port to listen on.
func parseNetwork(text string) (network filter.Network, connect, own uint16, err error) {
	switch text {
	case "none":
		return filter.None, 0, 0, nil
	case "open":
		return filter.Open, 0, 0, nil
	}
	rest := text
	if listens, found := strings.CutPrefix(text, "serve:"); found {
		port, more, both := strings.Cut(listens, ",")
		if own, err = parsePort(port); err == nil && !both {
			return filter.Stream, 0, own, nil
		}
		rest = more
	}
	if port, found := strings.CutPrefix(rest, "loopback:"); found && err == nil {
		if connect, err = parsePort(port); err == nil {
			return filter.Stream, connect, own, nil
		}
	}
	return 0, 0, 0, fmt.Errorf(
		"network %q is none of \"none\", \"loopback:PORT\", \"serve:PORT\", \"serve:PORT,loopback:PORT\", \"open\"", text)
}

func parsePort(text string) (uint16, error) {
	number, err := strconv.ParseUint(text, 10, 16)
	if err == nil && number == 0 {
		err = strconv.ErrRange
	}
	return uint16(number), err
}

// plan turns a request into what the second stage needs, or refuses it.
func (s *server) plan(req request) (stage, *fault) {
	if len(req.Argv) == 0 || req.Argv[0] == "" {
		return stage{}, candidateFault(reasonCannotStart, "argv %q is empty; name the program first", req.Argv)
	}
	env := make([]string, 0, len(req.Env))
	for name, value := range req.Env {
		if name == "" || strings.Contains(name, "=") {
			return stage{}, candidateFault(reasonCannotStart, "env name %q is empty or has a '='", name)
		}
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	for _, text := range slices.Concat(req.Argv, env) {
		if strings.ContainsRune(text, 0) {
			return stage{}, candidateFault(reasonCannotStart, "%q holds a zero byte", text)
		}
	}
	network, port, own, err := parseNetwork(req.Network)
	if err != nil {
		return stage{}, environmentFault("%v", err)
	}
	if !s.kernel.Seccomp {
		return stage{}, environmentFault("the kernel has no seccomp filters, so no program can be confined")
	}
	if network == filter.Stream && s.kernel.Landlock < landlockNet {
		return stage{}, environmentFault("network %q needs Landlock with TCP rules (ABI %d, Linux 6.7); the kernel has ABI %d",
			req.Network, landlockNet, s.kernel.Landlock)
	}
	cwd := req.Cwd
	if cwd == "" {
		cwd = "/"
	}
	return stage{Argv: req.Argv, Env: env, Cwd: cwd, Network: network, Port: port, Own: own, ABI: s.kernel.Landlock,
		Limits: req.Limits, Tasks: s.taskLimit(req.Limits.Processes)}, nil
}

// taskLimit is RLIMIT_NPROC: it counts every thread of the uid, the shim's own among them.
func (s *server) taskLimit(processes int64) uint64 {
	if processes <= 0 {
		return 0
	}
	slack := taskSlack
	if s.realm.local {
		slack = localTaskSlack
	}
	return uint64(processes) + uint64(s.realm.foreignTasks()+slack)
}

// pipes of a start. The child's ends stay plain descriptors: they must block, ours must not.
type pipes struct {
	theirs []int
	ours   []*os.File
}

func openPipes() (*pipes, error) {
	p := &pipes{}
	for number := range stageStatus + 1 {
		var ends [2]int // the end to read, the end to write
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			p.closeTheirs()
			p.closeOurs(0)
			return nil, err
		}
		mine, other := ends[0], ends[1]
		if number == 0 || number == stageConfig {
			mine, other = other, mine
		}
		_ = unix.SetNonblock(mine, true)
		p.ours = append(p.ours, os.NewFile(uintptr(mine), "pipe"))
		p.theirs = append(p.theirs, other)
	}
	return p, nil
}

func (p *pipes) closeTheirs() {
	for _, fd := range p.theirs {
		_ = unix.Close(fd)
	}
}

// closeOurs closes our ends from a number on.
func (p *pipes) closeOurs(from int) {
	for _, file := range p.ours[from:] {
		_ = file.Close()
	}
}

// launch starts a program and returns its session, which nobody pumps yet.
func (s *server) launch(req request) (*session, *fault) {
	plan, refused := s.plan(req)
	if refused != nil {
		return nil, refused
	}
	config, err := json.Marshal(plan)
	if err != nil {
		return nil, environmentFault("cannot describe the program: %v", err)
	}
	p, err := openPipes()
	if err != nil {
		return nil, environmentFault("cannot make pipes: %v", err)
	}
	kills := oomKills()
	started := time.Now()
	child, err := s.reaper.spawn(func() (int, error) { return s.fork(p) })
	p.closeTheirs()
	if err != nil {
		p.closeOurs(0)
		return nil, environmentFault("cannot start the second stage: %v", err)
	}
	if refused := s.await(plan.Argv, p, config, kills); refused != nil {
		_ = s.reaper.signal(child, unix.SIGKILL)
		<-child.exited
		p.closeOurs(0)
		return nil, refused
	}
	p.closeOurs(stageConfig)
	// Best effort: where memory runs out, the program goes before the shim.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", child.pid), []byte("1000"), 0)
	return &session{child: child, limits: req.Limits, realm: s.realm, reaper: s.reaper, link: s.link, stdin: p.ours[0],
		streams: [2]*os.File{p.ours[1], p.ours[2]}, input: make(chan func(), pendingWrites), started: started, oom: kills,
		done: make(chan struct{})}, nil
}

func (s *server) fork(p *pipes) (int, error) {
	files := make([]uintptr, len(p.theirs))
	for i, fd := range p.theirs {
		files[i] = uintptr(fd)
	}
	attributes := &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1", "GOGC=off"},
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	if s.realm.local {
		attributes.Sys.Pdeathsig = syscall.SIGKILL
	}
	return syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", s.executable), []string{"shim", stageFlag}, attributes)
}

// await feeds the stage its configuration and reads how it went.
func (s *server) await(argv []string, p *pipes, config []byte, kills int64) *fault {
	deadline := time.Now().Add(startLimit)
	_ = p.ours[stageConfig].SetWriteDeadline(deadline)
	_ = p.ours[stageStatus].SetReadDeadline(deadline)
	_, writeErr := p.ours[stageConfig].Write(config)
	_ = p.ours[stageConfig].Close()
	record, err := io.ReadAll(io.LimitReader(p.ours[stageStatus], 8192))
	switch result := parseStatus(record); {
	case err != nil:
		return environmentFault("the program was not started within %v", startLimit)
	case result == nil:
		return nil
	case result.kind == stageFailed:
		return candidateFault(reasonCannotStart, "%s", result.message(argv))
	case result.kind == stageBroken:
		return environmentFault("cannot prepare the program: %s", result.message(argv))
	case oomKills() > kills:
		return candidateFault(reasonOOM, "no memory is left to start a program in")
	default:
		return environmentFault("the second stage ended before it could start the program (%v)", writeErr)
	}
}
