// What all files of bindings need: arrays, and the part that the other file has.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace headwise {

template <class T, long... Shape>
using Array =
    nanobind::ndarray<T, nanobind::shape<Shape...>, nanobind::c_contig, nanobind::device::cpu>;

// Adds random numbers, and drawing from replay memories by them.
void bind_draws(nanobind::module_& m);

}  // namespace headwise
