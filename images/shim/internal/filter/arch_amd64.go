package filter

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const nativeArch = unix.AUDIT_ARCH_X86_64

// x32 has the same architecture word as amd64 and tells itself apart by one bit of the number.
const x32Bit = 0x40000000

var foreignABI = []bpf.Instruction{
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: x32Bit, SkipFalse: 1},
	bpf.RetConstant{Val: enosys},
}
