package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock's ABI that brought what is used here.
const (
	landlockNet    = 4
	landlockScopes = 6

	ruleNetPort = 2 // LANDLOCK_RULE_NET_PORT
)

// rulesetAttr is struct landlock_ruleset_attr; scoped came with ABI 6, and a kernel without it wants the shorter one.
type rulesetAttr struct{ accessFS, accessNet, scoped uint64 }

// netPortRule is struct landlock_net_port_attr.
type netPortRule struct{ allowedAccess, port uint64 }

// landlockABI returns the kernel's version of Landlock, 0 where there is none.
func landlockABI() int {
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// landlockRestrict confines the calling thread, and what it executes: TCP connect to port and bind to own only (both 0
// leaves TCP alone, one that is 0 refuses that), and, where the kernel can, no abstract unix sockets of processes outside, which would reach
// the other containers of the pod. The thread must have no_new_privs.
func landlockRestrict(port, own uint16, abi int) error {
	var ruleset rulesetAttr
	if port != 0 || own != 0 {
		if abi < landlockNet {
			return fmt.Errorf("landlock ABI %d cannot confine TCP, %d is needed", abi, landlockNet)
		}
		ruleset.accessNet = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP | unix.LANDLOCK_ACCESS_NET_BIND_TCP
	}
	if abi >= landlockScopes {
		ruleset.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	if ruleset.accessNet == 0 && ruleset.scoped == 0 {
		return nil
	}
	size := unsafe.Sizeof(ruleset)
	if abi < landlockScopes {
		size = unsafe.Offsetof(ruleset.scoped)
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&ruleset)), size, 0)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, rule := range []netPortRule{
		{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}, {unix.LANDLOCK_ACCESS_NET_BIND_TCP, uint64(own)},
	} {
		if rule.port == 0 {
			continue
		}
		_, _, errno = unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, ruleNetPort,
			uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if errno != 0 {
			return fmt.Errorf("landlock_add_rule: %w", errno)
		}
	}
	if _, _, errno = unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}
