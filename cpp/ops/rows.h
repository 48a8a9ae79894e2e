// Rows and numbers that minibatches are made of: gathering, drawing from a ring, uniform numbers.
#pragma once

#include <cstring>
#include <limits>

#include "core/rng.h"
#include "ops/program.h"

namespace headwise::ops {

inline void copy_row(const float* from, float* to, int columns) {
  std::memcpy(to, from, sizeof(float) * static_cast<std::size_t>(columns));
}

// A row by a number that is data: NaN where there is no such row.
inline void copy_row(const Buffer& from, int p, int c, std::int32_t row, float* to) {
  if (row >= 0 && row < from.rows) {
    copy_row(from.row(p, c, row), to, from.columns);
  } else {
    std::fill_n(to, from.columns, std::numeric_limits<float>::quiet_NaN());
  }
}

// The next rows of each source, in a member's own order (whole numbers in the bits), from its
// cursor on, which moves.
inline void gather(const Buffers& sources, const Buffer& order, const Buffer& cursor,
                   const Buffers& batch) {
  if (sources.size() != batch.size() || batch.empty()) throw Fault("a batch is of each source");
  const int members = order.members;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    expect_all(batch[i], "a batch", {members, 1, batch[0].rows, sources[i].columns});
    expect_all(sources[i], "a source", {members, 1, sources[i].rows, batch[i].columns});
  }
  expect_all(order, "the order", {members, 1, 1, order.columns});
  expect_all(cursor, "the cursor", {members, 1, 1, 1});
  emit(order.members, [=](int p) {
    const int rows = batch[0].rows;
    std::int32_t& at = *cursor.ints(p);
    const bool there = at >= 0 && at <= order.columns - rows;
    const std::int32_t* index = order.ints(p) + (there ? at : 0);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      for (int b = 0; b < rows; ++b) {
        copy_row(sources[i], p, 0, there ? index[b] : -1, batch[i].row(p, 0, b));
      }
    }
    if (there) at += rows;
  });
}

// Rows of x by a table of row numbers that is the same for all members, (1, 1, 1, n) in the bits.
inline void take(const Buffer& x, const Buffer& index, const Buffer& out) {
  expect(x, "x", {out.members, out.copies, x.rows, out.columns});
  expect_all(x, "x", {x.members, x.copies, x.rows, out.columns});
  expect_all(index, "rows", {1, 1, 1, index.columns});
  if (index.columns < out.rows) throw Fault("a row number for each row");
  emit(out.members, out.copies, [=](int p, int c) {
    for (int b = 0; b < out.rows; ++b) {
      copy_row(x, p, c, index.ints(0)[b], out.row(p, c, b));
    }
  });
}

inline void copy(const Buffer& from, const Buffer& to) {
  if (from.rows != to.rows || from.columns != to.columns || from.members != to.members ||
      (from.copies != 1 && from.copies != to.copies)) {
    throw Fault("a copy of other sizes");
  }
  emit(to.members, to.copies, [=](int p, int c) {
    for (int b = 0; b < to.rows; ++b) copy_row(from.row(p, c, b), to.row(p, c, b), to.columns);
  });
}

inline void fill(const Buffer& x, float value) {
  emit(x.members, x.copies, [=](int p, int c) {
    for (int b = 0; b < x.rows; ++b) std::fill_n(x.row(p, c, b), x.columns, value);
  });
}

// The first of the streams of learners: environments draw from other counters.
constexpr std::uint32_t kFirstStream = 16;

// Numbers in [0, 1), each a function of (seed, stream, clock, index in the member's rows). The seed
// and the clock are an int64 each, in the bits.
inline void uniform(const Buffer& out, const Buffer& seeds, const Buffer& clock,
                    std::uint32_t stream) {
  if (out.pitch != out.columns || out.copies != 1) throw Fault("uniform numbers fill whole rows");
  expect_long(seeds, "seeds", out.members);
  expect_long(clock, "the clock", out.members);
  emit(out.members, [=](int p) {
    const auto seed = static_cast<std::uint64_t>(*seeds.longs(p));
    const auto step = static_cast<std::uint64_t>(*clock.longs(p));
    const auto low = static_cast<std::uint32_t>(step),
               high = static_cast<std::uint32_t>(step >> 32);
    const std::int64_t size = std::int64_t{out.rows} * out.columns;
    float* to = out.at(p);
    constexpr int kDraws = 16;  // at once, so that the loop over them is one over lanes
    for (std::int64_t first = 0; first < size; first += 4 * kDraws) {
      std::uint32_t a[kDraws], b[kDraws], c[kDraws], d[kDraws];
      for (int i = 0; i < kDraws; ++i) {
        a[i] = static_cast<std::uint32_t>(first / 4 + i);
        b[i] = low;
        c[i] = kFirstStream + stream;
        d[i] = high;
      }
      auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
      for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
        for (int i = 0; i < kDraws; ++i) {
          const std::uint64_t product0 = std::uint64_t{0xD2511F53} * a[i];
          const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c[i];
          a[i] = static_cast<std::uint32_t>(product1 >> 32) ^ b[i] ^ key0;
          c[i] = static_cast<std::uint32_t>(product0 >> 32) ^ d[i] ^ key1;
          b[i] = static_cast<std::uint32_t>(product1);
          d[i] = static_cast<std::uint32_t>(product0);
        }
      }
      float block[4 * kDraws];
      for (int i = 0; i < kDraws; ++i) {
        const std::uint32_t words[4] = {a[i], b[i], c[i], d[i]};
        for (int k = 0; k < 4; ++k) block[4 * i + k] = headwise::uniform(words[k]);
      }
      std::copy_n(block, std::min<std::int64_t>(4 * kDraws, size - first), to + first);
    }
  });
}

inline void advance(const Buffer& clock, std::int64_t steps) {
  expect_long(clock, "the clock", clock.members);
  emit(clock.members, [=](int p) {
    auto& now = *clock.longs(p);
    now = static_cast<std::int64_t>(static_cast<std::uint64_t>(now) +
                                    static_cast<std::uint64_t>(steps));
  });
}

// A permutation of the rows for each epoch, by the order of uniform numbers (members, epochs,
// rows); it is laid out one epoch after another.
inline void shuffle(const Buffer& numbers, const Buffer& order, const Buffer& cursor) {
  const int epochs = numbers.rows;
  expect_all(numbers, "numbers", {order.members, 1, epochs, order.columns / epochs});
  expect_all(order, "the order", {order.members, 1, 1, epochs * numbers.columns});
  expect_all(cursor, "the cursor", {order.members, 1, 1, 1});
  emit(order.members, [=](int p) {
    const int rows = numbers.columns;
    for (int e = 0; e < numbers.rows; ++e) {
      const float* key = numbers.row(p, 0, e);
      std::int32_t* to = order.ints(p) + std::int64_t{e} * rows;
      for (int i = 0; i < rows; ++i) to[i] = i;
      std::stable_sort(to, to + rows, [key](int a, int b) { return key[a] < key[b]; });
    }
    *cursor.ints(p) = 0;
  });
}

}  // namespace headwise::ops
