// How this library is compiled into a program.
//
// Header-only, unless the program says otherwise: then every function is here. With LEAT_COMPILED
// (CMake: leat::compiled, pkg-config: leat-compiled) all that is not on the way of a record comes from
// libleat_compiled.a, and the program compiles several times as fast. Files of one program may differ.
#pragma once

#if __cplusplus < 202002L
#error "Leat needs C++20: compile with -std=c++20"
#endif

// Before the definition of a function that is declared in a public header and not on the way of a
// record. Such definitions lie in files named ..._impl.hpp.
#ifdef LEAT_COMPILED
#define LEAT_INLINE
#else
#define LEAT_INLINE inline
#endif
