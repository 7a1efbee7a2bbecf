package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
)

// Bounds of one frame; the SDK's codec has the same.
const (
	wireVersion = 1
	maxHeader   = 1 << 20
	maxPayload  = 64 << 20
)

// request is the header of every frame that a supervisor may send.
type request struct {
	ID      *int64            `json:"id"`
	Op      string            `json:"op"`
	N       int64             `json:"n"`
	Session int               `json:"session"`
	Signal  int               `json:"signal"`
	Argv    []string          `json:"argv"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
	Network string            `json:"network"`
	Limits  limits            `json:"limits"`
	Empty   []string          `json:"empty"`
	Path    string            `json:"path"`
	Paths   []string          `json:"paths"`
	Mode    *uint32           `json:"mode"`
	Max     *int64            `json:"max"`
}

// limits of one session; 0 leaves a resource as the container has it.
type limits struct {
	Processes   int64 `json:"processes"`
	FileBytes   int64 `json:"file_bytes"`
	OpenFiles   int64 `json:"open_files"`
	OutputBytes int64 `json:"output_bytes"`
}

// wireError says that the peer sent what is no frame; the connection is of no further use.
type wireError struct{ message string }

func (e *wireError) Error() string { return e.message }

// readFrame returns the next request and its payload; io.EOF at a clean end of the stream.
func readFrame(r *bufio.Reader) (request, []byte, error) {
	var req request
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return req, nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size < 2 || size > maxHeader {
		return req, nil, &wireError{fmt.Sprintf("header length %d is out of range 2 to %d", size, maxHeader)}
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return req, nil, unexpected(err)
	}
	if err := json.Unmarshal(text, &req); err != nil {
		return req, nil, &wireError{fmt.Sprintf("header is no request: %v", err)}
	}
	if req.N < 0 || req.N > maxPayload {
		return req, nil, &wireError{fmt.Sprintf("payload size %d is out of range 0 to %d", req.N, maxPayload)}
	}
	payload := make([]byte, req.N)
	if _, err := io.ReadFull(r, payload); err != nil {
		return req, nil, unexpected(err)
	}
	return req, payload, nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// link writes frames to the supervisor, one at a time.
type link struct {
	mu   sync.Mutex
	conn net.Conn
}

// send blocks while the supervisor does not read: that is the back-pressure which reaches a program's pipes.
// A failed send closes the connection, so that the reading side ends too.
func (l *link) send(header map[string]any, payload []byte) {
	if len(payload) > 0 {
		header["n"] = len(payload)
	}
	text, err := json.Marshal(header)
	if err == nil {
		frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
		buffers := net.Buffers{append(frame, text...), payload}
		l.mu.Lock()
		_, err = buffers.WriteTo(l.conn)
		l.mu.Unlock()
	}
	if err != nil {
		_ = l.conn.Close()
	}
}
