// Package heap is for the tests, which cannot use cgo themselves.
package heap

// #include <malloc.h>
//
// static size_t allocated(void) {
//   struct mallinfo2 info = mallinfo2();
//   return info.uordblks + info.hblkhd;
// }
import "C"

// Allocated is how many bytes malloc has given out: exact, where pages that are resident are not.
func Allocated() int { return int(C.allocated()) }
