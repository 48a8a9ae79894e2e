// Checking and translating actions of learners; see core/units.h and core/isa.h.
namespace headwise::units::HEADWISE_ISA {

inline bool fit(const Tables& tables, const float* given, std::size_t count) noexcept {
  const float *low = tables.low, *high = tables.high;
  const std::int32_t* is_option = tables.is_option;
  std::int32_t bad = 0;
  for (std::size_t begin = 0; begin < count; begin += tables.size) {
    const std::size_t some = count - begin < tables.size ? count - begin : tables.size;
    for (std::size_t j = 0; j < some; ++j) {
      const float x = given[begin + j];
      const std::int32_t outside =
          static_cast<std::int32_t>(!(x >= low[j])) | static_cast<std::int32_t>(!(x <= high[j]));
      const float safe = outside != 0 ? 0.0f : x;
      const auto whole = static_cast<float>(static_cast<std::int32_t>(safe));
      bad |= outside | (is_option[j] & static_cast<std::int32_t>(whole != safe));
    }
  }
  return bad == 0;
}

inline void translate(const Tables& tables, const float* given, std::size_t count,
                      float* values) noexcept {
  const float *bottom = tables.bottom, *top = tables.top;
  const std::int32_t* is_option = tables.is_option;
  for (std::size_t j = 0; j < count; ++j) {
    const float value = value_of(given[j], bottom[j], top[j]);
    values[j] = is_option[j] != 0 ? given[j] : value;
  }
}

}  // namespace headwise::units::HEADWISE_ISA
