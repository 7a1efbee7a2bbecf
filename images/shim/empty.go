package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const listBatch = 512

// emptyFolder removes everything below path and keeps path itself; a path that does not exist is empty. It follows no
// link, needs no permission that a program could have taken away, and no depth of nesting uses up descriptors: folders
// that are not empty are dissolved, their subfolders moved up to path.
func emptyFolder(path string) error {
	fd, err := openFolder(unix.AT_FDCWD, path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	root := os.NewFile(uintptr(fd), path)
	defer root.Close()
	if err := removeAttributes(fd); err != nil {
		return err
	}
	e := emptier{root: fd}
	for {
		names, err := list(root)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := e.remove(fd, name); err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
		}
	}
}

type emptier struct {
	root  int
	moved int
}

// remove takes one entry of a folder away.
func (e *emptier) remove(parent int, name string) error {
	err := unix.Unlinkat(parent, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return err
	}
	err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	if !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	if parent != e.root {
		return e.lift(parent, name)
	}
	if err := e.dissolve(name); err != nil {
		return err
	}
	return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
}

// dissolve empties a folder of the root; what folders it holds become folders of the root.
func (e *emptier) dissolve(name string) error {
	fd, err := openFolder(e.root, name)
	if err != nil {
		return err
	}
	folder := os.NewFile(uintptr(fd), name)
	defer folder.Close()
	for {
		names, err := list(folder)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, inner := range names {
			if err := e.remove(fd, inner); err != nil {
				return err
			}
		}
	}
}

// lift moves a folder to the root under a name that is free. A folder must be writable itself to get another parent.
func (e *emptier) lift(parent int, name string) error {
	_ = unix.Fchmodat(parent, name, 0o700, 0)
	for {
		e.moved++
		err := unix.Renameat2(parent, name, e.root, fmt.Sprintf(".moved-%d", e.moved), unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
}

// openFolder opens a folder, never through a link, and takes back the permissions on it where it is ours.
func openFolder(parent int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, name, flags, 0)
	if errors.Is(err, unix.EACCES) {
		_ = unix.Fchmodat(parent, name, 0o700, 0)
		fd, err = unix.Openat(parent, name, flags, 0)
	}
	if err != nil {
		return -1, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err == nil && int(info.Uid) == os.Geteuid() && info.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(fd, info.Mode&0o7777|0o700)
	}
	return fd, nil
}

// list returns some names of a folder, from its beginning; none when it is empty.
func list(folder *os.File) ([]string, error) {
	if _, err := folder.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := folder.Readdirnames(listBatch)
	if err == io.EOF {
		err = nil
	}
	return names, err
}

// removeAttributes: on a memory-backed folder anybody who may write into it may leave user attributes on it.
func removeAttributes(fd int) error {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return nil
	}
	buffer := make([]byte, size)
	size, err = unix.Flistxattr(fd, buffer)
	if err != nil {
		return err
	}
	for _, name := range strings.Split(string(buffer[:size]), "\x00") {
		if strings.HasPrefix(name, "user.") {
			if err := unix.Fremovexattr(fd, name); err != nil {
				return err
			}
		}
	}
	return nil
}
