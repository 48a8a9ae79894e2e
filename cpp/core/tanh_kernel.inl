// The hyperbolic tangent of each element; see core/isa.h.
namespace headwise::tanh::HEADWISE_ISA {

inline void all(const float* in, float* out, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) out[i] = tanh_approx(in[i]);
}

}  // namespace headwise::tanh::HEADWISE_ISA
