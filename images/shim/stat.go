package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// Entries that a supervisor is told of; a whole Debian has a tenth of it.
	maxEntries = 200_000
	linkShown  = 4096
)

// statFiles describes what is at the paths and below them as JSON lines: path, mode, size, time of the inode's last
// change in nanoseconds, target of a link. It follows no link, and a path that does not exist says nothing. Names that
// are no UTF-8 come out with replacement characters, which tells them apart from every name that is.
func statFiles(paths []string) ([]byte, *fault) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	entries := 0
	for _, root := range paths {
		if !filepath.IsAbs(root) {
			return nil, environmentFault("path %q must be absolute", root)
		}
		_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			var found unix.Stat_t
			if err != nil || unix.Lstat(path, &found) != nil {
				return nil
			}
			if entries++; entries > maxEntries || lines.Len() > maxPayload/2 {
				return fs.SkipAll
			}
			link := ""
			if found.Mode&unix.S_IFMT == unix.S_IFLNK {
				link, _ = os.Readlink(path)
				link = link[:min(len(link), linkShown)]
			}
			return encoder.Encode([]any{path, found.Mode, found.Size, found.Ctim.Nano(), link})
		})
	}
	if entries > maxEntries || lines.Len() > maxPayload/2 {
		return nil, candidateFault(reasonStorage, "there are more than %d files at %q", maxEntries, paths)
	}
	return lines.Bytes(), nil
}
