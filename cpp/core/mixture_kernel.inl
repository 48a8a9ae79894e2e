// A monotonic mixture and its gradient, row after row; see core/mixture.h and core/isa.h.
namespace headwise::mixture::HEADWISE_ISA {

inline void forward(const Rows& rows, float* hidden, float* mixed) noexcept {
  const std::int64_t heads = rows.heads, width = rows.width;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* advantage = rows.advantage + row * heads;
    const float* second = rows.second + row * width;
    float* unit = hidden + row * width;
    for (std::int64_t i = 0; i < width; ++i) unit[i] = 0.0f;
    for (std::int64_t head = 0; head < heads; ++head) {
      const float* first = rows.first + (row * heads + head) * width;
      const float a = advantage[head];
      for (std::int64_t i = 0; i < width; ++i) unit[i] += a * size_of(first[i]);
    }
    for (std::int64_t i = 0; i < width; ++i) unit[i] = elu(unit[i]);
    mixed[row] = lane_sum(width, [&](std::int64_t i) { return unit[i] * size_of(second[i]); });
  }
}

inline void backward(const Rows& rows, const float* hidden, const float* grad, float* to_advantage,
                     float* __restrict to_first, float* __restrict to_second) noexcept {
  const std::int64_t heads = rows.heads, width = rows.width;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* second = rows.second + row * width;
    const float* unit = hidden + row * width;
    float* to_unit = to_second + row * width;  // until the gradient by W2 is written there
    const float g = grad[row];
    for (std::int64_t i = 0; i < width; ++i) {
      to_unit[i] = g * size_of(second[i]) * elu_slope(unit[i]);
    }
    for (std::int64_t head = 0; head < heads; ++head) {
      const float* first = rows.first + (row * heads + head) * width;
      float* to = to_first + (row * heads + head) * width;
      const float a = rows.advantage[row * heads + head];
      to_advantage[row * heads + head] =
          lane_sum(width, [&](std::int64_t i) { return to_unit[i] * size_of(first[i]); });
      for (std::int64_t i = 0; i < width; ++i) to[i] = along_sign(first[i], a * to_unit[i]);
    }
    for (std::int64_t i = 0; i < width; ++i) to_unit[i] = along_sign(second[i], g * unit[i]);
  }
}

inline void slope(const Rows& rows, float* hidden, float* slope) noexcept {
  const std::int64_t heads = rows.heads, width = rows.width;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* second = rows.second + row * width;
    float* unit = hidden + row * width;
    for (std::int64_t i = 0; i < width; ++i) unit[i] = size_of(second[i]) * elu_slope(unit[i]);
    for (std::int64_t head = 0; head < heads; ++head) {
      const float* first = rows.first + (row * heads + head) * width;
      slope[row * heads + head] =
          lane_sum(width, [&](std::int64_t i) { return unit[i] * size_of(first[i]); });
    }
  }
}

}  // namespace headwise::mixture::HEADWISE_ISA
