//go:build asan

package leat

// AddressSanitizer keeps freed memory back for a while, so memory grows.
func init() { memoryMayGrow = true }
