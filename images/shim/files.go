package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const defaultMode = 0o644

// putFile writes a file as a whole or not at all, makes the folders above it, and returns the SHA-256 of its bytes.
func putFile(path string, mode *uint32, content []byte) (string, *fault) {
	if !filepath.IsAbs(path) {
		return "", environmentFault("path %q must be absolute", path)
	}
	permissions := os.FileMode(defaultMode)
	if mode != nil {
		permissions = os.FileMode(*mode) & os.ModePerm
	}
	if err := replace(path, permissions, content); err != nil {
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return "", candidateFault(reasonStorage, "no room for %q: %v", path, err)
		}
		return "", environmentFault("cannot write %q: %v", path, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

func replace(path string, permissions os.FileMode, content []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".put-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(permissions), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// getFile reads a regular file of at most limit bytes. What a program may have put there instead (a link, a pipe, a
// device, a file that grows) is refused and blocks nothing.
func getFile(path string, limit *int64) ([]byte, *fault) {
	if !filepath.IsAbs(path) {
		return nil, environmentFault("path %q must be absolute", path)
	}
	most := int64(maxPayload)
	if limit != nil {
		most = min(most, *limit)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, candidateFault(reasonProtocol, "cannot read %q: %v", path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, candidateFault(reasonProtocol, "%q is no regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, environmentFault("cannot read %q: %v", path, err)
	}
	if int64(len(content)) > most {
		return nil, candidateFault(reasonProtocol, "%q is larger than %d bytes", path, most)
	}
	return content, nil
}
