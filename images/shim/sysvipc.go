package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const ipcRemove = 0 // IPC_RMID

// ipcKinds are the three kinds of System V objects: the kernel's list, the column of the id, and the call that removes one.
var ipcKinds = []struct {
	file, column string
	remove       func(id int) unix.Errno
}{
	{"/proc/sysvipc/shm", "shmid", func(id int) unix.Errno {
		_, _, errno := unix.RawSyscall(unix.SYS_SHMCTL, uintptr(id), ipcRemove, 0)
		return errno
	}},
	{"/proc/sysvipc/msg", "msqid", func(id int) unix.Errno {
		_, _, errno := unix.RawSyscall(unix.SYS_MSGCTL, uintptr(id), ipcRemove, 0)
		return errno
	}},
	{"/proc/sysvipc/sem", "semid", func(id int) unix.Errno {
		_, _, errno := unix.RawSyscall6(unix.SYS_SEMCTL, uintptr(id), 0, ipcRemove, 0, 0, 0)
		return errno
	}},
}

// parseIPC returns the ids of the objects that uid owns or made: an owner may give an object away, its maker stays.
func parseIPC(text, column string, uid int) []int {
	lines := strings.Split(text, "\n")
	head := strings.Fields(lines[0])
	id, owner, maker := slices.Index(head, column), slices.Index(head, "uid"), slices.Index(head, "cuid")
	if id < 0 || owner < 0 || maker < 0 {
		return nil
	}
	var ids []int
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		if len(fields) <= max(id, owner, maker) {
			continue
		}
		if user := strconv.Itoa(uid); fields[owner] == user || fields[maker] == user {
			if number, err := strconv.Atoi(fields[id]); err == nil {
				ids = append(ids, number)
			}
		}
	}
	return ids
}

// removeIPC removes what the shim's uid has in the IPC namespace, which the containers of a pod share.
func removeIPC() error {
	for _, kind := range ipcKinds {
		text, err := os.ReadFile(kind.file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, id := range parseIPC(string(text), kind.column, os.Geteuid()) {
			if errno := kind.remove(id); errno != 0 && errno != unix.EINVAL && errno != unix.EIDRM {
				return fmt.Errorf("cannot remove %s %d: %w", kind.column, id, errno)
			}
		}
	}
	return nil
}
