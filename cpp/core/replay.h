// Drawing transitions from the rings of a replay memory: where they lie, and a copy of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace headwise {

// One member's memory: `rows` of each slot in a ring, (rows, slots, width).
struct Rings {
  const float* store;
  const std::int64_t *next, *count;  // by slot: where it writes next, and how much it has written
  std::int64_t rows, slots, width;
};

// Copies `batch` transitions that pairs of uniform numbers choose, a slot and one of its rows, to
// `drawn`; `discount` gets gamma, or zero where column `terminated` is one.
inline void draw(const Rings& rings, const float* uniform, float gamma, std::int64_t terminated,
                 std::int64_t batch, float* drawn, float* discount) {
  // A share of a size as a whole number below it, whatever the share and however it is rounded.
  const auto below = [](float share, std::int64_t size) {
    const float product = share * static_cast<float>(size);
    if (!(product > 0.0f)) return std::int64_t{0};
    const auto most = static_cast<float>(size);
    const std::int64_t number = product < most ? static_cast<std::int64_t>(product) : size - 1;
    return number < size ? number : size - 1;
  };
  thread_local std::vector<std::int64_t> places;
  places.resize(static_cast<std::size_t>(batch));
  // Places first, so that their lines are on the way when they are copied.
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t slot = below(uniform[2 * b], rings.slots);
    const std::int64_t count = rings.count[slot];
    const std::int64_t age = below(uniform[2 * b + 1], count > 1 ? count : 1);
    std::int64_t row = (rings.next[slot] - count + age) % rings.rows;
    row += row < 0 ? rings.rows : 0;
    const std::int64_t place = (row * rings.slots + slot) * rings.width;
    places[static_cast<std::size_t>(b)] = place;
    for (std::int64_t k = 0; k < rings.width; k += 16) __builtin_prefetch(rings.store + place + k);
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    const float* from = rings.store + places[static_cast<std::size_t>(b)];
    std::memcpy(drawn + b * rings.width, from,
                sizeof(float) * static_cast<std::size_t>(rings.width));
    discount[b] = gamma * (1.0f - from[terminated]);
  }
}

}  // namespace headwise
