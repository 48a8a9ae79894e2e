// The one file that knows Python exists.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>

#include "core/rng.h"

namespace nb = nanobind;
using headwise::Words;

NB_MODULE(_core, m) {
  m.doc() = "The compiled heart of Headwise: environments and counter-based randomness.";
  m.def("philox", &headwise::philox, nb::arg("counter"), nb::arg("key"),
        "Four random words: Philox4x32-10 of four counter words and a 64-bit key.");
}
