#include "backends/cpu/kernels/kernel_info.h"

#include <algorithm>

namespace assay::cpu {
namespace {

double of(size_t count) { return static_cast<double>(count); }
double stored(const KernelShape& s) { return of(number_size(s.number)); }
constexpr double kFloat = sizeof(float);
constexpr double kHalf = sizeof(uint16_t);

// (rows, cols) weights, (tokens, cols) inputs, (tokens, rows) outputs.
Work matmul(const KernelShape& s) {
  const double moved = of(s.rows) * of(s.cols) * stored(s) + of(s.tokens) * (of(s.cols) + of(s.rows)) * kFloat;
  return {moved, 2 * of(s.rows) * of(s.cols) * of(s.tokens)};
}

Work pack(const KernelShape& s) {
  return {(of(s.tokens) * of(s.cols) + of(packed_size(s.tokens, s.cols))) * kFloat, 0};
}

// Input, gamma and output of `cols`; square, sum, scale, gamma.
Work normalise(const KernelShape& s) { return {3 * of(s.cols) * kFloat, 4 * of(s.cols)}; }

// Two halves in, one out; exp, division, two products and the factor.
Work activate(const KernelShape& s) { return {3 * of(s.cols) * kFloat, 5 * of(s.cols)}; }

// Keys and values of `tokens` positions once for all queries; a product with each, and an exponential a position.
Work attend(const KernelShape& s) {
  const double moved = 2 * of(s.tokens) * of(s.cols) * stored(s) + 2 * of(s.rows) * of(s.cols) * kFloat;
  return {moved, of(s.rows) * of(s.tokens) * (4 * of(s.cols) + 2)};
}

Work combine(const KernelShape& s) {
  return {(of(s.rows) + 1) * of(s.cols) * kFloat, 2 * of(s.rows) * of(s.cols) + of(s.cols)};
}

Work add(const KernelShape& s) { return {3 * of(s.cols) * kFloat, of(s.cols)}; }
Work add_scaled(const KernelShape& s) { return {3 * of(s.cols) * kFloat, 2 * of(s.cols)}; }
Work round(const KernelShape& s) { return {2 * of(s.cols) * kFloat, 0}; }

// `cols` is what is rotated: a cosine and a sine for each pair.
Work rotate(const KernelShape& s) { return {3 * of(s.cols) * kFloat, 3 * of(s.cols)}; }
Work widen(const KernelShape& s) { return {of(s.cols) * (stored(s) + kFloat), 0}; }
Work narrow_bf16(const KernelShape& s) { return {of(s.cols) * (kFloat + kHalf), 0}; }

// Largest, then the sum of exponentials.
Work scan_segment(const KernelShape& s) { return {of(s.cols) * kFloat, 4 * of(s.cols)}; }

constexpr KernelInfo kTable[] = {
    {"matmul", kNumbers, 3, matmul},
    {"pack", 1, 3, pack},
    {"normalise", 1, 3, normalise},
    {"activate", 1, 3, activate},
    {"attend", kNumbers, 3, attend},
    {"combine", 1, 3, combine},
    {"add", 1, 3, add},
    {"add_scaled", 1, 3, add_scaled},
    {"round", 1, 3, round},
    {"rotate", 1, 3, rotate},
    {"widen", kNumbers, 3, widen},
    {"narrow_bf16", 1, 3, narrow_bf16},
    {"scan_segment", 1, 3, scan_segment},
};

constexpr size_t functions() {
  size_t count = 0;
  for (const KernelInfo& info : kTable) count += info.forms;
  return count;
}
static_assert(sizeof(Kernels) == sizeof(std::string_view) + functions() * sizeof(void (*)()),
              "a kernel without an entry, or an entry without a kernel");

}  // namespace

std::span<const KernelInfo> kernel_table() { return kTable; }

const KernelInfo* find_kernel(std::string_view name) {
  const auto found = std::find_if(std::begin(kTable), std::end(kTable), [&](const auto& i) { return i.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

}  // namespace assay::cpu
