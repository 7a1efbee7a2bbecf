package main

import (
	"time"

	"golang.org/x/sys/unix"
)

const watchInterval = 200 * time.Millisecond

// watch is the second fence behind RLIMIT_NPROC: it names the breach and ends it. It never returns.
func (s *server) watch() {
	for range time.Tick(watchInterval) {
		s.enforceProcesses()
	}
}

// enforceProcesses kills the youngest session's group where too many threads run, and everything on the next call if
// that was not enough, since programs can leave their group.
func (s *server) enforceProcesses() {
	var alive []*session
	limit := int64(0)
	for _, each := range s.all() {
		if each.alive() && each.limits.Processes > 0 {
			alive = append(alive, each)
			limit = max(limit, each.limits.Processes)
		}
	}
	if len(alive) == 0 {
		return
	}
	subjects, over := s.realm.over(limit)
	if !over {
		return
	}
	youngest := alive[len(alive)-1]
	if !youngest.processLimit.Swap(true) {
		youngest.signal(unix.SIGKILL)
		return
	}
	for _, each := range alive {
		each.processLimit.Store(true)
	}
	s.realm.kill(subjects)
}

// over says whether more than limit threads run now.
func (r realm) over(limit int64) ([]process, bool) {
	subjects, err := r.subjects()
	return subjects, err == nil && limit > 0 && tasks(subjects) > limit
}

func tasks(subjects []process) int64 {
	total := int64(0)
	for _, p := range subjects {
		if !p.dead() {
			total += int64(p.threads)
		}
	}
	return total
}
