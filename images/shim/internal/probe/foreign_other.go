//go:build !amd64

package main

// foreign has nothing to try: a 64-bit arm program cannot make a call of 32-bit arm.
func foreign([]uintptr) string { return "EPERM" }
