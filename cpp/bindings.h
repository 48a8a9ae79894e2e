// What all files of bindings need: arrays, and the parts that the other files have.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace headwise {

template <class T, long... Shape>
using Array =
    nanobind::ndarray<T, nanobind::shape<Shape...>, nanobind::c_contig, nanobind::device::cpu>;

// Adds what learners call: random numbers, Adam, tanh, the mixture and PPO's loss.
void bind_learners(nanobind::module_& m);

// Adds what is done with options: drawing, judging, relaxing and centring them.
void bind_options(nanobind::module_& m);

// Adds what layers call: products in bfloat16.
void bind_layers(nanobind::module_& m);

}  // namespace headwise
