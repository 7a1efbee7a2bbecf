package main

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunkBytes = 64 << 10
	// After a program's exit its pipes are read on for this long where something that it left behind keeps them open.
	drainGrace = 200 * time.Millisecond
	// Writes that a program has not taken yet; a supervisor that sends more without waiting for answers is refused.
	pendingWrites = 256
)

// session is one program from start to exit.
type session struct {
	id      int
	child   *child
	limits  limits
	realm   realm
	reaper  *reaper
	link    *link
	stdin   *os.File
	streams [2]*os.File // stdout, stderr
	input   chan func()
	inputMu sync.Mutex
	// inputClosed says that nobody will take from input any more.
	inputClosed bool
	started     time.Time
	oom         int64 // the kernel's count when it started

	output       atomic.Int64 // bytes of both streams
	outputLimit  atomic.Bool
	processLimit atomic.Bool
	done         chan struct{} // closed once the exit event is sent
}

var streamNames = [2]string{"stdout", "stderr"}

// run pumps until the exit event is sent. It starts after the answer to start, so that no event overtakes it.
func (s *session) run() {
	go s.feed()
	ends := make(chan struct{}, len(s.streams))
	for i := range s.streams {
		go func() {
			s.pump(i)
			ends <- struct{}{}
		}()
	}
	<-s.child.exited
	seconds := time.Since(s.started).Seconds()
	// A bomb's leader often ends of itself, because it cannot fork, before the watcher looks.
	if _, over := s.realm.over(s.limits.Processes); over {
		s.processLimit.Store(true)
	}
	_ = s.stdin.SetWriteDeadline(time.Now())
	for _, stream := range s.streams {
		_ = stream.SetReadDeadline(time.Now().Add(drainGrace))
	}
	for range s.streams {
		<-ends
	}
	s.link.send(s.exitEvent(seconds), nil)
	close(s.done)
}

func (s *session) exitEvent(seconds float64) map[string]any {
	event := map[string]any{
		"event": "exit", "session": s.id, "code": nil, "signal": nil, "seconds": seconds,
		"oom":           oomKills() > s.oom,
		"output_limit":  s.outputLimit.Load(),
		"process_limit": s.processLimit.Load(),
	}
	if status := s.child.status; status.Signaled() {
		event["signal"] = int(status.Signal())
	} else {
		event["code"] = status.ExitStatus()
	}
	return event
}

// pump sends one stream on. It reads only when the last chunk is gone, so a slow supervisor holds the program up.
func (s *session) pump(i int) {
	stream := s.streams[i]
	defer stream.Close()
	buffer := make([]byte, chunkBytes)
	emit := func(n int) {
		if n > 0 {
			s.link.send(map[string]any{"event": "output", "session": s.id, "stream": streamNames[i]}, buffer[:n])
			if total := s.output.Add(int64(n)); s.limits.OutputBytes > 0 && total > s.limits.OutputBytes {
				s.outputLimit.Store(true)
				s.signal(unix.SIGKILL)
			}
		}
	}
	for {
		n, err := stream.Read(buffer)
		emit(n)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drain(stream, buffer, emit)
		}
		if err != nil {
			break
		}
	}
	s.link.send(map[string]any{"event": "output", "session": s.id, "stream": streamNames[i], "eof": true}, nil)
}

// drain takes what lies in a pipe and no more than fits into one: whoever still writes cannot hold it open.
func drain(stream *os.File, buffer []byte, emit func(int)) {
	raw, err := stream.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		left, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		for err == nil && left > 0 {
			var n int
			if n, err = unix.Read(int(fd), buffer[:min(left, len(buffer))]); n <= 0 {
				return
			}
			emit(n)
			left -= n
		}
	})
}

// feed does what concerns stdin in order, so that a program which does not read holds up nothing else.
func (s *session) feed() {
	defer s.stdin.Close()
	for {
		select {
		case act := <-s.input:
			act()
		case <-s.done:
			s.inputMu.Lock()
			s.inputClosed = true
			s.inputMu.Unlock()
			for len(s.input) > 0 {
				(<-s.input)()
			}
			return
		}
	}
}

// enqueue hands an action to feed; the answer comes when it has happened.
func (s *session) enqueue(act func() error, answer func(*fault)) {
	task := func() {
		if err := act(); err != nil {
			answer(candidateFault(reasonExited, "stdin of session %d is closed: %v", s.id, err))
			return
		}
		answer(nil)
	}
	switch closed, taken := s.offer(task); {
	case closed:
		answer(candidateFault(reasonExited, "session %d has ended", s.id))
	case !taken:
		answer(environmentFault("more than %d writes to session %d wait for its program to read; wait for answers", pendingWrites, s.id))
	}
}

func (s *session) offer(task func()) (closed, taken bool) {
	s.inputMu.Lock()
	defer s.inputMu.Unlock()
	if s.inputClosed {
		return true, false
	}
	select {
	case s.input <- task:
		return false, true
	default:
		return false, false
	}
}

func (s *session) write(payload []byte) error {
	_, err := s.stdin.Write(payload)
	return err
}

func (s *session) signal(signal unix.Signal) bool {
	return s.reaper.signal(s.child, signal) == nil
}

func (s *session) alive() bool {
	select {
	case <-s.child.exited:
		return false
	default:
		return true
	}
}
