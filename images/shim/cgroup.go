package main

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// oomFiles lists where the kernel counts its OOM kills for us: cgroup v2 and v1, as a container sees them and as a host does.
func oomFiles(membership string) []string {
	files := []string{}
	for _, line := range strings.Split(membership, "\n") {
		part := strings.SplitN(line, ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[1] == "":
			files = append(files, "/sys/fs/cgroup"+part[2]+"/memory.events")
		case part[1] == "memory":
			files = append(files, "/sys/fs/cgroup/memory"+part[2]+"/memory.oom_control")
		}
	}
	return append(files, "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
}

func parseOOM(text []byte) (int64, bool) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "oom_kill "); found {
			count, err := strconv.ParseInt(value, 10, 64)
			return count, err == nil
		}
	}
	return 0, false
}

// oomKills returns the kernel's count for the shim's cgroup, 0 where it cannot be read.
func oomKills() int64 {
	membership, _ := os.ReadFile("/proc/self/cgroup")
	for _, file := range oomFiles(string(membership)) {
		if text, err := os.ReadFile(file); err == nil {
			if count, found := parseOOM(text); found {
				return count
			}
		}
	}
	return 0
}
