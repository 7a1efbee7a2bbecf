package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limit of a sweep's killing; a healthy one takes milliseconds.
const sweepLimit = 5 * time.Second

// kernel is what the machine offers to confine programs with.
type kernel struct {
	Seccomp  bool `json:"seccomp"`
	Landlock int  `json:"landlock"`
}

// server answers one supervisor.
type server struct {
	realm      realm
	kernel     kernel
	executable int // descriptor of the shim's own file
	reaper     *reaper
	link       *link

	mu       sync.Mutex
	sessions []*session // a session's number is its place plus one
}

// answer of a request: header fields, a payload, and what follows once they are sent.
type answer struct {
	fields  map[string]any
	payload []byte
	then    func()
	later   bool // somebody else answers
}

func (s *server) hello() {
	s.link.send(map[string]any{
		"event": "hello", "v": wireVersion, "pid": os.Getpid(), "uid": os.Getuid(), "kernel": s.kernel,
	}, nil)
}

// serve handles requests in order until the supervisor closes the connection, which is no error, or asks for the exit.
func (s *server) serve(conn net.Conn) error {
	s.hello()
	reader := bufio.NewReaderSize(conn, chunkBytes)
	for {
		req, payload, err := readFrame(reader)
		if err != nil {
			if broken := (*wireError)(nil); errors.As(err, &broken) {
				return err
			}
			if err != io.EOF && !errors.Is(err, net.ErrClosed) {
				fmt.Fprintf(os.Stderr, "shim: the connection broke: %v\n", err)
			}
			return nil
		}
		result, refused := s.handle(req, payload)
		if !result.later {
			s.reply(req, result, refused)
		}
		if result.then != nil {
			result.then()
		}
		if req.Op == "exit" && refused == nil {
			return nil
		}
	}
}

func (s *server) reply(req request, result answer, refused *fault) {
	header := result.fields
	if header == nil {
		header = map[string]any{}
	}
	header["id"], header["ok"] = req.ID, refused == nil
	if refused != nil {
		header["error"] = refused
	}
	s.link.send(header, result.payload)
}

func (s *server) handle(req request, payload []byte) (answer, *fault) {
	if req.ID == nil {
		return answer{}, environmentFault("op %q has no id", req.Op)
	}
	switch req.Op {
	case "start":
		return s.start(req)
	case "write", "close_stdin", "signal":
		return s.ofSession(req, payload)
	case "sweep":
		return s.sweep(req)
	case "put":
		digest, refused := putFile(req.Path, req.Mode, payload)
		return answer{fields: map[string]any{"sha256": digest}}, refused
	case "get":
		content, refused := getFile(req.Path, req.Max)
		return answer{payload: content}, refused
	case "stat":
		lines, refused := statFiles(req.Paths)
		return answer{payload: lines}, refused
	case "exit":
		return answer{}, nil
	default:
		return answer{}, environmentFault("op %q is none of start, write, close_stdin, signal, sweep, put, get, stat, exit", req.Op)
	}
}

func (s *server) start(req request) (answer, *fault) {
	started, refused := s.launch(req)
	if refused != nil {
		return answer{}, refused
	}
	s.mu.Lock()
	s.sessions = append(s.sessions, started)
	started.id = len(s.sessions)
	s.mu.Unlock()
	fields := map[string]any{"session": started.id, "pid": started.child.pid}
	return answer{fields: fields, then: func() { go started.run() }}, nil
}

func (s *server) ofSession(req request, payload []byte) (answer, *fault) {
	s.mu.Lock()
	known := req.Session >= 1 && req.Session <= len(s.sessions)
	var target *session
	if known {
		target = s.sessions[req.Session-1]
	}
	s.mu.Unlock()
	if !known {
		return answer{}, environmentFault("session %d was never started", req.Session)
	}
	reply := func(refused *fault) { s.reply(req, answer{}, refused) }
	switch req.Op {
	case "write":
		target.enqueue(func() error { return target.write(payload) }, reply)
	case "close_stdin":
		target.enqueue(target.stdin.Close, reply)
	default:
		return answer{fields: map[string]any{"delivered": target.signal(unix.Signal(req.Signal))}}, nil
	}
	return answer{later: true}, nil
}

// sweep leaves nothing of what ran before: no process, no file in a folder that can be written, no System V IPC object.
// Its answer comes after the exit events of every session.
func (s *server) sweep(req request) (answer, *fault) {
	deadline := time.Now().Add(sweepLimit)
	killed, left, err := s.realm.purge(s.reaper.reap, sweepLimit)
	if err != nil {
		return answer{}, environmentFault("cannot list processes: %v", err)
	}
	for _, old := range s.all() {
		select {
		case <-old.done:
		case <-time.After(time.Until(deadline)):
		}
	}
	fields := map[string]any{"killed": killed, "left": left}
	if left > 0 {
		return answer{fields: fields}, nil
	}
	folders := req.Empty
	if !s.realm.local {
		folders = append([]string{"/tmp", "/dev/shm"}, folders...)
		if err := removeIPC(); err != nil {
			return answer{fields: fields}, environmentFault("%v", err)
		}
	}
	for _, folder := range folders {
		if err := emptyFolder(folder); err != nil {
			return answer{fields: fields}, environmentFault("cannot empty %q: %v", folder, err)
		}
	}
	return answer{fields: fields}, nil
}

func (s *server) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*session(nil), s.sessions...)
}
