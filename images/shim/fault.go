package main

import "fmt"

// Reasons of the outcome table that the shim can tell.
const (
	reasonCannotStart = "CannotStartProgram"
	reasonExited      = "Exited"
	reasonOOM         = "OOMKilled"
	reasonProtocol    = "Protocol"
	reasonStorage     = "StorageLimit"
	reasonEnvironment = "EnvironmentFailed"
)

// fault is an answer that is not ok: who caused it, the word for it, and a message for people.
type fault struct {
	Party   string `json:"party"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (f *fault) Error() string { return f.Reason + ": " + f.Message }

// candidateFault blames what runs in the container.
func candidateFault(reason, format string, args ...any) *fault {
	return &fault{"candidate", reason, fmt.Sprintf(format, args...)}
}

// environmentFault blames the machinery: such a case is never assessed.
func environmentFault(format string, args ...any) *fault {
	return &fault{"environment", reasonEnvironment, fmt.Sprintf(format, args...)}
}
