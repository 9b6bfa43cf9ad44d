// How the library is compiled into a program.
//
// Header-only by default. With LEAT_COMPILED (CMake: leat::compiled, pkg-config: leat-compiled),
// everything off the per-record path comes from libleat_compiled.a, and a program compiles several
// times as fast. Source files of one program may use either.
#pragma once

// Public headers include this one, directly or not, before anything that an older standard does not
// know: so this is the first error.
#if __cplusplus < 202002L
#error "Leat needs C++20: compile with -std=c++20"
#endif

// Precedes the definition of a function that a header declares and that is off the per-record path.
// Such definitions are in files named ..._impl.hpp.
#ifdef LEAT_COMPILED
#define LEAT_INLINE
#else
#define LEAT_INLINE inline
#endif
