package main

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// process is one row of /proc.
type process struct {
	pid, parent, threads int
	state                byte
	started              uint64 // clock ticks since boot: with the pid it names a process for good
}

func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// parseStat reads /proc/PID/stat. The name is in parentheses and may hold anything, a parenthesis too.
func parseStat(text []byte) (process, bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return process{}, false
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return process{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	parent, err1 := strconv.Atoi(string(fields[1]))
	threads, err2 := strconv.Atoi(string(fields[17]))
	started, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil || err1 != nil || err2 != nil || err3 != nil {
		return process{}, false
	}
	return process{pid, parent, threads, fields[0][0], started}, true
}

func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(text)
}

// processes lists all of /proc.
func processes() ([]process, error) {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, alive := readProcess(pid); alive {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// descendants picks those that have root above them.
func descendants(all []process, root int) []process {
	parents := make(map[int]int, len(all))
	for _, p := range all {
		parents[p.pid] = p.parent
	}
	var below []process
	for _, p := range all {
		pid := p.parent
		for steps := 0; pid > 0 && pid != root && steps <= len(all); steps++ {
			pid = parents[pid]
		}
		if pid == root && p.pid != root {
			below = append(below, p)
		}
	}
	return below
}

// realm is what the shim rules: every process of its container, or, locally, what descends from it.
type realm struct{ local bool }

// subjects lists the processes of the realm, the shim itself left out.
func (r realm) subjects() ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	if r.local {
		return descendants(all, os.Getpid()), nil
	}
	others := all[:0]
	for _, p := range all {
		if p.pid != os.Getpid() {
			others = append(others, p)
		}
	}
	return others, nil
}

// foreignTasks counts the threads that share the shim's uid and are no subjects: RLIMIT_NPROC counts them too.
func (r realm) foreignTasks() int {
	all, err := processes()
	if err != nil {
		return 0
	}
	ours := make(map[int]bool)
	for _, p := range descendants(all, os.Getpid()) {
		ours[p.pid] = true
	}
	tasks := 0
	for _, p := range all {
		if p.pid == os.Getpid() || (r.local && !ours[p.pid] && ownerOf(p.pid) == os.Getuid()) {
			tasks += p.threads
		}
	}
	return tasks
}

func ownerOf(pid int) int {
	var info unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid), &info); err != nil {
		return -1
	}
	return int(info.Uid)
}

// kill sends SIGKILL to all subjects. In a container that is one call which nothing can outrun. Locally the tree is
// stopped first, since a fork bomb makes processes faster than they are found, and each signal goes through a pidfd.
func (r realm) kill(subjects []process) {
	if !r.local {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	stopped := make(map[int]bool)
	for found := true; found; {
		found = false
		for _, p := range subjects {
			if !stopped[p.pid] && !p.dead() {
				found = true
				stopped[p.pid] = true
				p.signal(unix.SIGSTOP)
			}
		}
		next, err := r.subjects()
		if err != nil {
			break
		}
		subjects = next
	}
	for _, p := range subjects {
		p.signal(unix.SIGKILL)
	}
}

func (p process) signal(signal unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, alive := readProcess(p.pid); alive && now.started == p.started {
		_ = unix.PidfdSendSignal(fd, signal, nil, 0)
	}
}

// purge kills and reaps until the realm is empty or the limit is over; it returns how many it killed and how many are left.
func (r realm) purge(reap func(), limit time.Duration) (killed, left int, err error) {
	deadline := time.Now().Add(limit)
	seen := make(map[int]bool)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		reap()
		subjects, err := r.subjects()
		if err != nil {
			return len(seen), -1, err
		}
		if len(subjects) == 0 {
			return len(seen), 0, nil
		}
		for _, p := range subjects {
			if !p.dead() {
				seen[p.pid] = true
			}
		}
		if time.Now().After(deadline) {
			return len(seen), len(subjects), nil
		}
		r.kill(subjects)
		time.Sleep(pause)
	}
}
