package filter

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// decide runs a filter as the kernel would. The interpreter reads big-endian words, so the words are laid that way.
func decide(t *testing.T, network Network, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(Build(network))
	if err != nil {
		t.Fatalf("the program is invalid: %v", err)
	}
	data := make([]byte, offsetArgs+6*8)
	binary.BigEndian.PutUint32(data[offsetNumber:], number)
	binary.BigEndian.PutUint32(data[offsetArch:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[offsetArgs+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(data[offsetArgs+8*i+4:], uint32(arg>>32))
	}
	verdict, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(verdict)
}

var networks = map[string]Network{"none": None, "stream": Stream, "open": Open}

func TestSocketsAreAllowedByFamilyTypeAndProtocol(t *testing.T) {
	const socket = unix.SYS_SOCKET
	for _, row := range []struct {
		name               string
		call               uint32
		args               []uint64
		none, stream, open uint32
	}{
		{"unix stream", socket, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, allow, allow, allow},
		{"unix datagram", socket, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, allow, allow, allow},
		{"tcp", socket, []uint64{unix.AF_INET, unix.SOCK_STREAM, 0}, eperm, allow, allow},
		{"tcp by name", socket, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}, eperm, allow, allow},
		{"tcp with flags", socket, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0}, eperm, allow, allow},
		{"tcp6", socket, []uint64{unix.AF_INET6, unix.SOCK_STREAM, 0}, eperm, allow, allow},
		{"udp", socket, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, eperm, eperm, allow},
		{"udp6", socket, []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0}, eperm, eperm, allow},
		{"raw", socket, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, eperm, eperm, allow},
		{"mptcp", socket, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, eperm, eperm, allow},
		{"sctp", socket, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, eperm, eperm, allow},
		{"netlink", socket, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, absentFamily, eperm, allow},
		{"vsock", socket, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, eperm, eperm, allow},
		{"packet", socket, []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, eperm, eperm, allow},
		{"smc", socket, []uint64{unix.AF_SMC, unix.SOCK_STREAM, 0}, eperm, eperm, allow},
		{"inet behind a high word that the kernel drops", socket, []uint64{1<<32 | unix.AF_INET, unix.SOCK_STREAM, 0}, eperm, allow, allow},
		{"unix pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, allow, allow, allow},
		{"other pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, eperm, eperm, allow},
		{"fast open by sendto", unix.SYS_SENDTO, []uint64{3, 1, 1, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL, 1, 16}, allow, eperm, allow},
		{"fast open by sendmsg", unix.SYS_SENDMSG, []uint64{3, 1, unix.MSG_FASTOPEN}, allow, eperm, allow},
		{"fast open by sendmmsg", unix.SYS_SENDMMSG, []uint64{3, 1, 1, unix.MSG_FASTOPEN}, allow, eperm, allow},
		{"ordinary sendto", unix.SYS_SENDTO, []uint64{3, 1, 1, unix.MSG_NOSIGNAL, 0, 0}, allow, allow, allow},
	} {
		for name, want := range map[string]uint32{"none": row.none, "stream": row.stream, "open": row.open} {
			if got := decide(t, networks[name], nativeArch, row.call, row.args...); got != want {
				t.Errorf("%s under %s: %#x, want %#x", row.name, name, got, want)
			}
		}
	}
}

func TestEveryNetworkKeepsWhatLeadsOutOfTheContainer(t *testing.T) {
	type call struct {
		name   string
		number uint32
		args   []uint64
		want   uint32
	}
	calls := []call{
		{"clone into a user namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | 17}, eperm},
		{"clone into a network namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNET | 17}, eperm},
		{"fork", unix.SYS_CLONE, []uint64{17}, allow},
		{"thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		{"unshare users", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER}, eperm},
		{"unshare files", unix.SYS_UNSHARE, []uint64{unix.CLONE_FILES}, allow},
		{"own limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0x7f0000001000, 0}, allow},
		{"another's limit", unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0x7f0000001000, 0}, eperm},
		{"another's limit at an address without low bits", unix.SYS_PRLIMIT64, []uint64{1, 7, 0x7f00000000, 0}, eperm},
		{"reading another's limit", unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0, 0x7f0000001000}, allow},
		{"read", unix.SYS_READ, nil, allow},
		{"execve", unix.SYS_EXECVE, nil, allow},
	}
	for _, number := range refused {
		calls = append(calls, call{"refused", number, nil, eperm})
	}
	for _, number := range absent {
		calls = append(calls, call{"absent", number, nil, enosys})
	}
	for name, network := range networks {
		for _, c := range calls {
			if got := decide(t, network, nativeArch, c.number, c.args...); got != c.want {
				t.Errorf("%s (%d) under %s: %#x, want %#x", c.name, c.number, name, got, c.want)
			}
		}
	}
}

func TestCallsOfAnotherArchitectureAreRefusedWhateverTheyAre(t *testing.T) {
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_RISCV64, 0} {
		for name, network := range networks {
			for range 200 {
				number := rand.Uint32N(1 << 10)
				if got := decide(t, network, arch, number, unix.AF_UNIX); got != eperm {
					t.Fatalf("call %d of architecture %#x under %s: %#x, want %#x", number, arch, name, got, eperm)
				}
			}
		}
	}
}

func TestEveryCallGetsAnAnswerOfTheThree(t *testing.T) {
	for range 20000 {
		number := rand.Uint32N(1 << 11)
		args := []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}
		switch got := decide(t, Network(rand.IntN(3)), nativeArch, number, args...); got {
		case allow, eperm, enosys:
		default:
			t.Fatalf("call %d%v: %#x", number, args, got)
		}
	}
}
