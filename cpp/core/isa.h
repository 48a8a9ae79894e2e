// One kernel, several instruction sets. A file named by HEADWISE_KERNEL is compiled once for each
// (core/each_isa.inl), and the best that this machine has is chosen when the module is loaded.
// Multiply-adds are fused where that is written out and nowhere else, so the results are the same
// to the bit.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HEADWISE_MANY_ISAS 1
#else
#define HEADWISE_MANY_ISAS 0
#endif

namespace headwise {

enum class Isa { kBaseline, kAvx2, kAvx512 };

// HEADWISE_ISA=baseline or avx2 in the environment asks for less than the machine has, so that a
// test can compare them.
[[nodiscard]] inline Isa best_isa() noexcept {
#if HEADWISE_MANY_ISAS
  const char* variable = std::getenv("HEADWISE_ISA");
  const std::string_view asked = variable != nullptr ? variable : "";
  if (asked == "baseline") return Isa::kBaseline;
  if (asked != "avx2" && __builtin_cpu_supports("x86-64-v4")) return Isa::kAvx512;
  if (__builtin_cpu_supports("x86-64-v3")) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}
inline const Isa kIsa = best_isa();

}  // namespace headwise

// Calls KERNELS::<isa>::FUNCTION with the arguments given.
#if HEADWISE_MANY_ISAS
#define HEADWISE_DISPATCH(KERNELS, FUNCTION, ...)   \
  (kIsa == Isa::kAvx512 ? KERNELS::avx512::FUNCTION \
   : kIsa == Isa::kAvx2 ? KERNELS::avx2::FUNCTION   \
                        : KERNELS::baseline::FUNCTION)(__VA_ARGS__)
#else
#define HEADWISE_DISPATCH(KERNELS, FUNCTION, ...) KERNELS::baseline::FUNCTION(__VA_ARGS__)
#endif
