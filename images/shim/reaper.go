package main

import (
	"sync"

	"golang.org/x/sys/unix"
)

// child is the leader of a session's process group.
type child struct {
	pid    int
	status unix.WaitStatus
	exited chan struct{} // closed once status holds
}

// reaper is the only place that waits: it collects orphans too, which PID 1 and subreapers are given.
type reaper struct {
	mu       sync.Mutex
	children map[int]*child
}

// spawn registers what fork starts before anybody can reap it.
func (r *reaper) spawn(fork func() (int, error)) (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := fork()
	if err != nil {
		return nil, err
	}
	c := &child{pid: pid, exited: make(chan struct{})}
	r.children[pid] = c
	return c, nil
}

// reap collects everything that has ended; call it on SIGCHLD.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if c := r.children[pid]; c != nil {
			delete(r.children, pid)
			c.status = status
			close(c.exited)
		}
	}
}

// signal reaches the process group of a child that has not been reaped, so never one that took over its number.
func (r *reaper) signal(c *child, signal unix.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[c.pid] != c {
		return unix.ESRCH
	}
	return unix.Kill(-c.pid, signal)
}
