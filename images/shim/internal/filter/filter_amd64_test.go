package filter

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestX32DoesNotExist(t *testing.T) {
	for _, number := range []uint32{unix.SYS_SOCKET, unix.SYS_READ, 0x3fffffff, 0xffffffff ^ x32Bit} {
		if got := decide(t, Open, nativeArch, number|x32Bit); got != enosys {
			t.Errorf("x32 call %d: %#x, want %#x", number, got, enosys)
		}
	}
}
