package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pumped runs a pump whose deadline is over before it reads, as one that a slow supervisor has held up, and returns how
// many bytes it sends before the end of the stream.
func pumped(t *testing.T, fill func(*os.File)) int {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	reader, writer := os.NewFile(uintptr(ends[0]), "reader"), os.NewFile(uintptr(ends[1]), "writer")
	defer writer.Close()
	fill(writer)
	if err := reader.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	s := &session{id: 1, link: &link{conn: near}, streams: [2]*os.File{reader, nil}}
	go s.pump(0)
	_ = far.SetDeadline(time.Now().Add(5 * time.Second))
	incoming := bufio.NewReader(far)
	for total := 0; ; {
		var length [4]byte
		if _, err := io.ReadFull(incoming, length[:]); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, int(length[2])<<8|int(length[3]))
		if _, err := io.ReadFull(incoming, text); err != nil {
			t.Fatal(err)
		}
		var header struct {
			N   int64
			EOF bool
		}
		if err := json.Unmarshal(text, &header); err != nil {
			t.Fatal(err)
		}
		if header.EOF {
			return total
		}
		if _, err := io.CopyN(io.Discard, incoming, header.N); err != nil {
			t.Fatal(err)
		}
		total += int(header.N)
	}
}

func TestWhatLiesInAPipeIsSentThoughTheTimeIsOver(t *testing.T) {
	got := pumped(t, func(writer *os.File) {
		if _, err := writer.Write(make([]byte, 60000)); err != nil {
			t.Fatal(err)
		}
	})
	if got != 60000 {
		t.Errorf("%d bytes arrived", got)
	}
}

func TestOneThatWritesForEverDoesNotHoldAStreamOpen(t *testing.T) {
	const pipe = 64 << 10
	got := pumped(t, func(writer *os.File) {
		go func() {
			for block := make([]byte, 4096); ; {
				if _, err := writer.Write(block); err != nil {
					return
				}
			}
		}()
		time.Sleep(50 * time.Millisecond)
	})
	if got < pipe/2 || got > pipe {
		t.Errorf("%d bytes came through a pipe of %d", got, pipe)
	}
}
