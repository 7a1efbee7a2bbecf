// Package filter builds the seccomp program that every foreign program runs under.
//
// Build is pure: it returns classic BPF that the tests run through an interpreter as well as through the kernel.
// Anything that is not refused here is allowed; the container's own profile still applies beside it.
package filter

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Network says which sockets a program may make.
type Network int

const (
	// None leaves AF_UNIX only.
	None Network = iota
	// Stream leaves AF_UNIX and plain TCP; Landlock confines where to. No datagrams, since Landlock does not see them.
	Stream
	// Open filters no sockets.
	Open
)

// Offsets in struct seccomp_data; arguments are 64 bits wide and both supported machines are little-endian.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

const (
	allow        = unix.SECCOMP_RET_ALLOW
	eperm        = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	enosys       = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	absentFamily = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)

	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	socketTypeMask = 0xf
)

// refused everywhere: ways into other processes, the kernel, mounts and namespaces, and places that outlive a sweep.
var refused = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_BY_HANDLE_AT,
}

// absent: answered as by a kernel that does not have them. The flags of clone3 lie behind a pointer that a filter cannot
// read (libc falls back to clone); POSIX message queues would keep state over a restart.
var absent = []uint32{unix.SYS_CLONE3, unix.SYS_MQ_OPEN}

// Build returns the filter for one kind of network.
func Build(network Network) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: eperm},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	program = append(program, foreignABI...)
	for _, number := range refused {
		program = append(program, onCall(number, bpf.RetConstant{Val: eperm})...)
	}
	for _, number := range absent {
		program = append(program, onCall(number, bpf.RetConstant{Val: enosys})...)
	}
	program = append(program, onCall(unix.SYS_CLONE, refuseBits(0, newNamespaces)...)...)
	program = append(program, onCall(unix.SYS_UNSHARE, refuseBits(0, newNamespaces|unix.CLONE_NEWTIME)...)...)
	program = append(program, onCall(unix.SYS_PRLIMIT64, refuseLimitsOfOthers...)...)
	program = append(program, sockets(network)...)
	return append(program, bpf.RetConstant{Val: allow})
}

// onCall runs block, which must end in a return on every path, for one system call.
func onCall(number uint32, block ...bpf.Instruction) []bpf.Instruction {
	head := bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(block))}
	return append([]bpf.Instruction{head}, block...)
}

// low loads the lower half of an argument: all that the kernel reads of an int.
func low(argument uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetArgs + 8*argument, Size: 4}
}

func high(argument uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetArgs + 8*argument + 4, Size: 4}
}

func refuseBits(argument, bits uint32) []bpf.Instruction {
	return []bpf.Instruction{
		low(argument),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipFalse: 1},
		bpf.RetConstant{Val: eperm},
		bpf.RetConstant{Val: allow},
	}
}

// refuseLimitsOfOthers: a program has the shim's uid and could lower its limits, so that a case fails for reasons which
// look like the environment's. Its own (pid 0) and mere reading (no new limit) pass.
var refuseLimitsOfOthers = []bpf.Instruction{
	low(0),
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 5},
	low(2),
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
	high(2),
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
	bpf.RetConstant{Val: eperm},
	bpf.RetConstant{Val: allow},
}

func sockets(network Network) []bpf.Instruction {
	switch network {
	case None:
		return append(onCall(unix.SYS_SOCKET, unixOnly...), onCall(unix.SYS_SOCKETPAIR, unixOnly...)...)
	case Stream:
		program := append(onCall(unix.SYS_SOCKET, unixOrTCP...), onCall(unix.SYS_SOCKETPAIR, unixOnly...)...)
		// A send with MSG_FASTOPEN connects without passing Landlock's check of connect.
		program = append(program, onCall(unix.SYS_SENDTO, refuseBits(3, unix.MSG_FASTOPEN)...)...)
		program = append(program, onCall(unix.SYS_SENDMSG, refuseBits(2, unix.MSG_FASTOPEN)...)...)
		return append(program, onCall(unix.SYS_SENDMMSG, refuseBits(3, unix.MSG_FASTOPEN)...)...)
	default:
		return nil
	}
}

// unixOnly answers netlink as a kernel that has none: useradd, su and their like want to tell the audit system, and take
// any other refusal for one of that system's.
var unixOnly = []bpf.Instruction{
	low(0),
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 3},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 1},
	bpf.RetConstant{Val: absentFamily},
	bpf.RetConstant{Val: eperm},
	bpf.RetConstant{Val: allow},
}

// unixOrTCP names the protocol too: Landlock sees TCP alone, not MPTCP, SCTP or SMC over the same families.
var unixOrTCP = []bpf.Instruction{
	low(0),
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 9},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_INET6, SkipTrue: 6},
	low(1),
	bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketTypeMask},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SOCK_STREAM, SkipTrue: 3},
	low(2),
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
	bpf.RetConstant{Val: eperm},
	bpf.RetConstant{Val: allow},
}
