// Rows of uniform numbers for learners, each a function of (seed, stream, step, index) alone.
#pragma once

#include <cstdint>

#include "core/isa.h"
#include "core/rng.h"

#define HEADWISE_KERNEL "core/fill_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

// Learners draw from other counters than environments do (Purpose is 0 or 1 there).
constexpr std::uint32_t kFirstStream = 16;

// Fills a row of `size` numbers in [0, 1) for a member's seed.
inline void fill_uniforms(float* out, std::int64_t size, std::uint64_t seed, std::uint32_t stream,
                          std::uint64_t step) noexcept {
  HEADWISE_DISPATCH(fill, uniforms, out, size, seed, static_cast<std::uint32_t>(step),
                    kFirstStream + stream, static_cast<std::uint32_t>(step >> 32));
}

}  // namespace headwise
