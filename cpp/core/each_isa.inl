// Includes HEADWISE_KERNEL once for each instruction set; see core/isa.h. Within it HEADWISE_ISA is
// the name of the set, for its namespace, and HEADWISE_BYTES the size of its registers.
#define HEADWISE_ISA baseline
#define HEADWISE_BYTES 16
#include HEADWISE_KERNEL
#undef HEADWISE_ISA
#undef HEADWISE_BYTES

#if HEADWISE_MANY_ISAS
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define HEADWISE_ISA avx2
#define HEADWISE_BYTES 32
#include HEADWISE_KERNEL
#undef HEADWISE_ISA
#undef HEADWISE_BYTES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4", "prefer-vector-width=512")
#define HEADWISE_ISA avx512
#define HEADWISE_BYTES 64
#include HEADWISE_KERNEL
#undef HEADWISE_ISA
#undef HEADWISE_BYTES
#pragma GCC pop_options
#endif

#undef HEADWISE_KERNEL
