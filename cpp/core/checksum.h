// A number that almost certainly changes when the bytes do: FNV-1a, eight bytes at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace headwise {

[[nodiscard]] inline std::uint64_t checksum(std::string_view bytes,
                                            std::uint64_t sum = 0xCBF29CE484222325u) noexcept {
  const char* at = bytes.data();
  for (std::size_t left = bytes.size(); left > 0;) {
    const std::size_t count = left < 8 ? left : 8;
    std::uint64_t word = 0;
    std::memcpy(&word, at, count);
    sum = (sum ^ word) * 0x100000001B3u;
    sum ^= sum >> 29;  // the product alone would never carry a high bit down
    at += count;
    left -= count;
  }
  return sum;
}

}  // namespace headwise
