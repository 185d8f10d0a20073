#include "backends/cpu/kernels/kernel_probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "backends/reference/arithmetic/formats.h"

namespace assay::cpu {
namespace {

// Mixed signs and magnitudes out of a seed.
std::vector<float> values(size_t count, uint64_t seed) {
  std::vector<float> made(count);
  uint64_t state = seed * 2862933555777941757u + 3037000493u;
  for (float& v : made) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto unit = static_cast<float>(state >> 40) * 0x1p-24f - 0.5f;
    v = unit * std::exp2(static_cast<float>((state >> 33) % 9) - 4.0f);
  }
  return made;
}

// (items, width) floats, `shift` behind the beginning of the memory.
class Rows {
 public:
  Rows(size_t items, size_t width, size_t shift) : width_(width), shift_(shift), data_(items * width + shift) {}
  // As many inputs; every kind of input has a salt of its own.
  Rows(const ProbeSpec& spec, size_t width, uint64_t salt) : Rows(spec.items, width, spec.shift) {
    for (size_t i = 0; i < spec.items; ++i) {
      const uint64_t seed = i >= spec.items / 2 ? spec.neighbours : 0;
      const std::vector<float> row = values(width, (salt * 1000 + i) * 1000 + seed);
      std::copy(row.begin(), row.end(), at(i));
    }
  }
  float* at(size_t item) { return data_.data() + shift_ + item * width_; }
  std::vector<float> row(size_t item) { return {at(item), at(item) + width_}; }
  size_t width() const { return width_; }

 private:
  size_t width_;
  size_t shift_;
  std::vector<float> data_;
};
using Shared = std::shared_ptr<Rows>;

Shared rows(size_t items, size_t width, size_t shift) { return std::make_shared<Rows>(items, width, shift); }
Shared inputs(const ProbeSpec& spec, size_t width, uint64_t salt) { return std::make_shared<Rows>(spec, width, salt); }

// Floats in a stored form; any bit pattern is a number as long as the values are small.
std::vector<std::byte> store(const std::vector<float>& exact, Number number) {
  std::vector<std::byte> bytes(exact.size() * number_size(number));
  for (size_t i = 0; i < exact.size(); ++i) {
    const uint16_t half = arithmetic::to_bf16(exact[i]) & (number == Number::kFloat16 ? 0xbfffu : 0xffffu);
    if (number == Number::kFloat32) {
      std::copy_n(reinterpret_cast<const std::byte*>(&exact[i]), 4, &bytes[4 * i]);
    } else {
      std::copy_n(reinterpret_cast<const std::byte*>(&half), 2, &bytes[2 * i]);
    }
  }
  return bytes;
}
size_t form_of(const ProbeSpec& spec) { return static_cast<size_t>(spec.shape.number); }

template <class Pointer>
std::vector<Pointer> pointers(Rows& of, Range some) {
  std::vector<Pointer> made;
  for (size_t i = some.begin; i < some.end; ++i) made.push_back(of.at(i));
  return made;
}

// A kernel that does `one` for each item and each part of its outputs.
template <class One>
Probe by_item(const ProbeSpec& spec, size_t outputs, const Shared& out, const One& one) {
  return {.items = spec.items,
          .outputs = outputs,
          .run =
              [one](const Kernels& kernels, Range some, Range part) {
                for (size_t i = some.begin; i < some.end; ++i) one(kernels, i, part.begin, part.end - part.begin);
              },
          .result = [out](size_t item) { return out->row(item); }};
}

Probe matmul(const ProbeSpec& spec) {
  struct Data {
    std::vector<std::byte> weight;
    Rows x;
    Rows y;
    std::vector<float> packed;
  };
  const auto [rows, cols] = std::pair(spec.shape.rows, spec.shape.cols);
  const auto d = std::make_shared<Data>(Data{store(values(rows * cols, 1), spec.shape.number), Rows(spec, cols, 2),
                                             Rows(spec.items, rows, spec.shift),
                                             std::vector<float>(packed_size(spec.items, cols))});
  const auto run = [d, cols = cols, form = form_of(spec)](const Kernels& kernels, Range some, Range part) {
    const std::vector<const float*> x = pointers<const float*>(d->x, some);
    const std::vector<float*> y = pointers<float*>(d->y, some);
    const bool packs = x.size() >= kPackFrom;  // as callers do
    if (packs) {
      kernels.pack({x.data(), x.size(), cols, 0, (x.size() + kPackTokens - 1) / kPackTokens, d->packed.data()});
    }
    kernels.matmul[form]({d->weight.data(), cols, part.begin, part.end, x.data(), y.data(), 0, x.size(),
                          packs ? d->packed.data() : nullptr});
  };
  return {.items = spec.items, .outputs = rows, .run = run, .result = [d](size_t item) { return d->y.row(item); }};
}

Probe pack(const ProbeSpec& spec) {
  struct Data {
    Rows x;
    std::map<size_t, std::vector<float>> packed;  // by the first item of a call
  };
  const size_t cols = spec.shape.cols;
  const size_t blocks = (cols + kPackColumns - 1) / kPackColumns;
  const auto d = std::make_shared<Data>(Data{Rows(spec, cols, 2), {}});
  const auto run = [d, cols](const Kernels& kernels, Range some, Range) {
    const std::vector<const float*> x = pointers<const float*>(d->x, some);
    std::vector<float>& to = d->packed[some.begin];
    to.resize(packed_size(x.size(), cols));
    kernels.pack({x.data(), x.size(), cols, 0, (x.size() + kPackTokens - 1) / kPackTokens, to.data()});
  };
  const auto result = [d, blocks](size_t item) {
    const auto call = std::prev(d->packed.upper_bound(item));
    const size_t token = item - call->first;
    std::vector<float> row;
    for (size_t b = 0; b < blocks; ++b) {
      const size_t at = (token / kPackTokens * blocks + b) * kPackTokens + token % kPackTokens;
      const auto from = call->second.begin() + static_cast<ptrdiff_t>(at * kPackColumns);
      row.insert(row.end(), from, from + kPackColumns);
    }
    return row;
  };
  return {.items = spec.items, .outputs = 1, .run = run, .result = result};
}

// Items take turns: RMSNorm and LayerNorm, rounded and not.
Probe normalise(const ProbeSpec& spec) {
  const size_t n = spec.shape.cols;
  const Shared x = inputs(spec, n, 3), y = rows(spec.items, n, spec.shift);
  const auto gamma = std::make_shared<std::vector<float>>(values(n, 4));
  return by_item(spec, 1, y, [=](const Kernels& k, size_t i, size_t, size_t) {
    const bool centred = i % 2 == 1;
    k.normalise({x->at(i), gamma->data(), centred ? gamma->data() : nullptr, y->at(i), n, 1e-5f, centred, i % 4 > 1});
  });
}

// Items take turns among the activations.
Probe activate(const ProbeSpec& spec) {
  const size_t n = spec.shape.cols;
  const Shared first = inputs(spec, n, 5), up = inputs(spec, n, 6), y = rows(spec.items, n, spec.shift);
  return by_item(spec, n, y, [=](const Kernels& k, size_t i, size_t begin, size_t count) {
    const auto gate = static_cast<Gate>(i % 4);
    k.activate({gate, first->at(i) + begin, up->at(i) + begin, y->at(i) + begin, count, 0.37f, i % 8 > 3});
  });
}

Probe attend(const ProbeSpec& spec) {
  struct Data {
    std::vector<std::byte> keys;
    std::vector<std::byte> values;
    std::vector<const void*> key_at;
    std::vector<const void*> value_at;
    Rows query;
    Rows out;
    std::vector<size_t> counts;  // of the items: each its own end
  };
  const auto [positions, channels] = std::pair(spec.shape.tokens, spec.shape.cols);
  const auto d = std::make_shared<Data>(Data{store(values(positions * channels, 7), spec.shape.number),
                                             store(values(positions * channels, 8), spec.shape.number),
                                             {},
                                             {},
                                             Rows(spec, channels, 9),
                                             Rows(spec.items, channels + 2, spec.shift),
                                             {}});
  for (size_t j = 0; j < positions; ++j) {
    d->key_at.push_back(&d->keys[j * channels * number_size(spec.shape.number)]);
    d->value_at.push_back(&d->values[j * channels * number_size(spec.shape.number)]);
  }
  for (size_t i = 0; i < spec.items; ++i) d->counts.push_back(positions - std::min(positions - 1, i / 2));
  const auto run = [d, channels = channels, form = form_of(spec)](const Kernels& kernels, Range some, Range) {
    const std::vector<const float*> query = pointers<const float*>(d->query, some);
    const std::vector<float*> out = pointers<float*>(d->out, some);
    kernels.attend[form]({query.data(), &d->counts[some.begin], query.size(), d->key_at.data(), d->value_at.data(),
                          channels, 0.3f, out.data()});
  };
  return {.items = spec.items, .outputs = 1, .run = run, .result = [d](size_t item) { return d->out.row(item); }};
}

Probe combine(const ProbeSpec& spec) {
  const auto [splits, n] = std::pair(spec.shape.rows, spec.shape.cols);
  const size_t stride = n + 2;  // of a split: weighted values, maximum, total
  const Shared parts = inputs(spec, splits * stride, 10), y = rows(spec.items, n, spec.shift);
  for (size_t i = 0; i < spec.items; ++i) {
    for (size_t s = 0; s < splits; ++s) {
      float& total = parts->at(i)[s * stride + n + 1];
      total = 1 + std::fabs(total);
    }
  }
  return by_item(spec, n, y, [=, splits = splits, n = n](const Kernels& k, size_t i, size_t begin, size_t count) {
    const float* part = parts->at(i);
    k.combine({part + n, part + n + 1, part + begin, splits, stride, stride, count, i % 2 == 1, y->at(i) + begin});
  });
}

// Kernels that change `y` in place.
template <class Change>
Probe in_place(const ProbeSpec& spec, bool cut, const Change& change) {
  const size_t n = spec.shape.cols;
  const Shared from = inputs(spec, n, 11), x = inputs(spec, n, 12), y = rows(spec.items, n, spec.shift);
  Probe probe = by_item(spec, cut ? n : 1, y, [=](const Kernels& k, size_t i, size_t begin, size_t count) {
    change(k, x->at(i) + begin, y->at(i) + begin, cut ? count : n, i);
  });
  probe.prepare = [=, items = spec.items] {
    for (size_t i = 0; i < items; ++i) std::copy_n(from->at(i), n, y->at(i));
  };
  return probe;
}

Probe add(const ProbeSpec& spec) {
  return in_place(spec, true, [](const Kernels& k, float* x, float* y, size_t n, size_t) { k.add(x, y, n); });
}
Probe add_scaled(const ProbeSpec& spec) {
  return in_place(spec, true,
                  [](const Kernels& k, float* x, float* y, size_t n, size_t) { k.add_scaled(x, 0.7f, y, n); });
}
Probe round(const ProbeSpec& spec) {
  return in_place(spec, true, [](const Kernels& k, float*, float* y, size_t n, size_t) { k.round(y, n); });
}
// The angles are those of x: a cosine and a sine for each pair.
Probe rotate(const ProbeSpec& spec) {
  return in_place(spec, false, [](const Kernels& k, float* x, float* y, size_t n, size_t i) {
    k.rotate(y, x, x + n / 2, n / 2, i % 2 == 1);
  });
}

Probe widen(const ProbeSpec& spec) {
  const size_t n = spec.shape.cols;
  const size_t size = number_size(spec.shape.number);
  const Shared exact = inputs(spec, n, 13), y = rows(spec.items, n, spec.shift);
  std::vector<std::vector<std::byte>> kept;
  for (size_t i = 0; i < spec.items; ++i) kept.push_back(store(exact->row(i), spec.shape.number));
  return by_item(spec, n, y, [=, form = form_of(spec)](const Kernels& k, size_t i, size_t begin, size_t count) {
    k.widen[form](kept[i].data() + begin * size, y->at(i) + begin, count);
  });
}

Probe narrow_bf16(const ProbeSpec& spec) {
  const size_t n = spec.shape.cols;
  const Shared x = inputs(spec, n, 14);
  const auto y = std::make_shared<std::vector<uint16_t>>(spec.items * n);
  Probe probe = by_item(spec, n, x, [=](const Kernels& k, size_t i, size_t begin, size_t count) {
    k.narrow_bf16(x->at(i) + begin, y->data() + i * n + begin, count);
  });
  probe.result = [=](size_t item) {
    std::vector<float> row;
    for (size_t c = 0; c < n; ++c) row.push_back(arithmetic::from_bf16((*y)[item * n + c]));
    return row;
  };
  return probe;
}

Probe scan_segment(const ProbeSpec& spec) {
  const size_t n = spec.shape.cols;
  const Shared logits = inputs(spec, n, 15), y = rows(spec.items, 3, 0);
  return by_item(spec, 1, y, [=](const Kernels& k, size_t i, size_t, size_t) {
    const SegmentResult found = k.scan_segment(logits->at(i), n);
    y->at(i)[0] = found.top;
    y->at(i)[1] = found.total;
    y->at(i)[2] = static_cast<float>(found.argmax);
  });
}

constexpr std::array<std::pair<std::string_view, Probe (*)(const ProbeSpec&)>, 13> kProbes = {
    {{"matmul", matmul},
     {"pack", pack},
     {"normalise", normalise},
     {"activate", activate},
     {"attend", attend},
     {"combine", combine},
     {"add", add},
     {"add_scaled", add_scaled},
     {"round", round},
     {"rotate", rotate},
     {"widen", widen},
     {"narrow_bf16", narrow_bf16},
     {"scan_segment", scan_segment}}};

}  // namespace

std::optional<Probe> make_probe(const ProbeSpec& spec) {
  for (const auto& [name, make] : kProbes) {
    if (name == spec.kernel) return make(spec);
  }
  return std::nullopt;
}

}  // namespace assay::cpu
