// The probe is what the shim's tests run as a foreign program: each verb tries one thing and prints what came of it.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	verb, args := os.Args[1], os.Args[2:]
	if act, known := verbs[verb]; known {
		act(args)
		return
	}
	fmt.Println("unknown verb", verb)
	os.Exit(2)
}

var verbs = map[string]func([]string){
	"syscalls": syscalls,
	"foreign":  func(args []string) { fmt.Println(foreign(numbers(args))) },
	"open":     open,
	"fds":      fds,
	"identity": identity,
	"connect":  connect,
	"fastopen": fastOpen,
	"bind":     bind,
	"signal": func(args []string) {
		fmt.Println(result(unix.Kill(int(numbers(args)[0]), unix.Signal(numbers(args)[1]))))
	},
	"limits":   showLimits,
	"daemon":   daemon,
	"litter":   litter,
	"flood":    flood,
	"sleep":    func([]string) { time.Sleep(time.Hour) },
	"hash":     func([]string) { _, _ = io.Copy(os.Stdout, os.Stdin) },
	"allocate": allocate,
	"bomb":     bomb,
}

func result(err error) string {
	if err == nil {
		return "ok"
	}
	var errno syscall.Errno
	for err != nil {
		if number, is := err.(syscall.Errno); is {
			errno = number
			break
		}
		wrapper, is := err.(interface{ Unwrap() error })
		if !is {
			return err.Error()
		}
		err = wrapper.Unwrap()
	}
	return unix.ErrnoName(errno)
}

func numbers(args []string) []uintptr {
	all := make([]uintptr, 6)
	for i, text := range args {
		number, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			panic(err)
		}
		all[i] = uintptr(number)
	}
	return all
}

// syscalls makes each call given as NUMBER,ARG,ARG… and prints a line of its result; "P" stands for valid memory.
func syscalls(args []string) {
	memory := make([]byte, 4096)
	for _, call := range args {
		parts := strings.Split(call, ",")
		for i, part := range parts {
			if part == "P" {
				parts[i] = fmt.Sprint(uintptr(unsafe.Pointer(&memory[0])))
			}
		}
		n := append(numbers(parts), 0)
		_, _, errno := unix.RawSyscall6(n[0], n[1], n[2], n[3], n[4], n[5], 0)
		if errno == 0 {
			fmt.Println("ok")
		} else {
			fmt.Println(unix.ErrnoName(errno))
		}
	}
}

func open(args []string) {
	for _, path := range args {
		file, err := os.Open(path)
		if err == nil {
			_, err = file.Read(make([]byte, 1))
			if err == io.EOF {
				err = nil
			}
		}
		fmt.Println(result(err))
	}
}

// fds prints what descriptors the program was born with; those that the runtime opens are above and of the poller.
func fds([]string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	var inherited []string
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/sys/fs/cgroup") {
			inherited = append(inherited, entry.Name()+"="+strings.SplitN(target, ":", 2)[0])
		}
	}
	sort.Strings(inherited)
	fmt.Println(strings.Join(inherited, " "))
}

func identity([]string) {
	sid, _ := unix.Getsid(0)
	fmt.Println("own session", sid == os.Getpid(), "own group", unix.Getpgrp() == os.Getpid())
	_, err := os.Open("/dev/tty")
	fmt.Println("tty", result(err))
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "NoNewPrivs:") || strings.HasPrefix(line, "Seccomp:") {
			fmt.Println(strings.Join(strings.Fields(line), " "))
		}
	}
	cwd, _ := os.Getwd()
	fmt.Println("cwd", cwd)
	env := os.Environ()
	sort.Strings(env)
	fmt.Println("env", strings.Join(env, " "))
}

func connect(args []string) {
	conn, err := net.DialTimeout(args[0], args[1], 2*time.Second)
	if err == nil {
		_ = conn.Close()
	}
	fmt.Println(result(err))
}

func bind(args []string) {
	listener, err := net.Listen(args[0], args[1])
	if err == nil {
		_ = listener.Close()
	}
	fmt.Println(result(err))
}

// fastOpen connects by sending: not by connect.
func fastOpen(args []string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		fmt.Println(result(err))
		return
	}
	port := numbers(args)[0]
	to := &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
	fmt.Println(result(unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to)))
	_, err = unix.SendmsgN(fd, []byte("x"), nil, to, unix.MSG_FASTOPEN)
	fmt.Println(result(err))
}

func showLimits([]string) {
	for _, resource := range []int{unix.RLIMIT_FSIZE, unix.RLIMIT_NOFILE, unix.RLIMIT_CORE} {
		var limit unix.Rlimit
		_ = unix.Getrlimit(resource, &limit)
		fmt.Println(int64(limit.Cur), int64(limit.Max))
	}
}

// daemon leaves a process in a session of its own, reparented, with its output on the program's pipes ("hold") or none,
// and prints its pid.
func daemon(args []string) {
	if os.Getenv("PROBE_DAEMON") != "" {
		signal.Ignore(unix.SIGTERM, unix.SIGHUP)
		if os.Getenv("PROBE_DAEMON") == "outer" {
			fmt.Println(fork("inner", args[0]))
			return
		}
		time.Sleep(time.Hour)
	}
	middle := fork("outer", args[0])
	_, _ = unix.Wait4(middle, nil, 0, nil)
}

func fork(stage, how string) int {
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	files := []uintptr{null.Fd(), 1, 2}
	if stage == "inner" && how != "hold" {
		files = []uintptr{null.Fd(), null.Fd(), null.Fd()}
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"probe", "daemon", how}, &syscall.ProcAttr{
		Env: []string{"PROBE_DAEMON=" + stage}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Println(result(err))
		os.Exit(1)
	}
	return pid
}

// litter leaves state wherever a program can: files in each folder given, an attribute on it, and System V objects.
func litter(folders []string) {
	for _, folder := range folders {
		locked := folder + "/locked/within/deep"
		fmt.Println(result(os.MkdirAll(locked, 0o755)))
		fmt.Println(result(os.WriteFile(locked+"/state", []byte("memory"), 0o400)))
		_ = os.Symlink("/etc", folder+"/link")
		_ = os.Chmod(locked, 0)
		_ = os.Chmod(folder+"/locked", 0)
		fmt.Println(result(unix.Setxattr(folder, "user.state", []byte("memory"), unix.XATTR_CREATE)))
	}
	for _, call := range [][3]uintptr{
		{unix.SYS_SHMGET, 4242, 4096}, {unix.SYS_MSGGET, 4242, 0o1000 | 0o600}, {unix.SYS_SEMGET, 4242, 1},
	} {
		_, _, errno := unix.RawSyscall(call[0], call[1], call[2], 0o1000|0o600)
		fmt.Println(errno == 0)
	}
}

func flood(args []string) {
	left := int(numbers(args)[0])
	block := make([]byte, 10007)
	for i := range block {
		block[i] = byte('a' + i%26)
	}
	for left > 0 {
		n, err := os.Stdout.Write(block[:min(left, len(block))])
		if err != nil {
			os.Exit(1)
		}
		left -= n
	}
}

func allocate(args []string) {
	block := make([]byte, numbers(args)[0])
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	fmt.Println(len(block))
}

// bomb forks for ever and does not mind being refused; its children only live. Raw calls: the runtime may start no thread.
func bomb([]string) {
	pause := unix.Timespec{Nsec: int64(time.Millisecond)}
	for {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		for errno == 0 && pid == 0 {
			_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
		if errno != 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		}
	}
}
