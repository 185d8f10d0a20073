#include "backends/cuda/vendor/fast_linear.h"

#include <algorithm>
#include <array>
#include <set>

#include "backends/cuda/vendor/layouts.h"
#include "backends/cuda/vendor/row_equality.h"
#include "backends/cuda/vendor/vendor_object.h"

namespace assay::cuda::vendor {
namespace {

constexpr uint64_t kWorkspace = uint64_t{32} << 20;  // bytes
constexpr uint64_t kAlignment = 256;
constexpr int64_t kTestBytes = int64_t{64} << 20;  // of results in the test of equal rows

uint64_t copy_bytes(const Matrix& m) {
  const uint64_t bytes = uint64_t{2} * static_cast<uint64_t>(m.rows) * static_cast<uint64_t>(round_up(m.cols, kTile));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// What cuBLASLt's fast kernels ask of alignment.
bool suits(const Matrix& m) { return m.data != nullptr && m.tiled && m.rows % 4 == 0; }

int test_tokens(const Matrix& m, int most) {
  const int64_t room = kTestBytes / (int64_t{m.rows} * static_cast<int64_t>(sizeof(float)));
  return static_cast<int>(std::clamp<int64_t>(room, 2, most));
}

Status refused(const Text& why) { return infra(std::string("cuBLASLt: ") + why.line); }

}  // namespace

Result<FastLinear> FastLinear::open(const std::vector<std::filesystem::path>& folders,
                                    const std::vector<Matrix>& matrices, int most_tokens) {
  Result<const TableHead*> head = open_object(kCublasLt, folders);
  if (!head) return head.status();
  FastLinear linear;
  linear.table_ = reinterpret_cast<const GemmTable*>(*head);
  Text why;
  void* handle = nullptr;
  if (linear.table_->open(&handle, &why) != 0) return refused(why);
  linear.handle_ = {handle, linear.table_->close};

  std::vector<Matrix> wanted;
  std::set<const void*> seen;
  uint64_t bytes = 0;
  for (const Matrix& m : matrices) {
    if (!suits(m) || !seen.insert(m.data).second) continue;
    wanted.push_back(m);
    bytes += copy_bytes(m);
  }
  Result<DeviceBuffer<std::byte>> copies = take_memory(bytes, "row-major copies of dense weights for prefill=fast");
  if (!copies) return copies.status();
  linear.copies_ = std::move(*copies);
  linear.workspace_ = DeviceBuffer<std::byte>(kWorkspace);
  std::byte* to = linear.copies_.data();
  for (const Matrix& m : wanted) {
    untile(m, to, nullptr);
    check(cudaStreamSynchronize(nullptr), "untile");
    if (Status status = linear.add_plan(m, to, most_tokens); !status.ok()) return status;
    to += copy_bytes(m);
  }
  return linear;
}

Status FastLinear::add_plan(const Matrix& matrix, const void* copy, int most_tokens) {
  const int cols = round_up(matrix.cols, kTile);
  const auto same = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const GemmPlan& p) { return p.rows == matrix.rows && p.cols == cols; });
  if (same != plans_.end()) {
    copy_of_[matrix.data] = {copy, static_cast<size_t>(same - plans_.begin())};
    return {};
  }
  constexpr int kChoices = 16;
  const auto shape = [&](int tokens) { return GemmShape{matrix.rows, cols, tokens, cols, matrix.rows}; };
  std::array<GemmChoice, kChoices> choices{};
  int count = 0;
  Text why;
  const GemmShape typical = shape(std::min(most_tokens, 1024));
  if (table_->choose(handle_.get(), &typical, kWorkspace, kChoices, choices.data(), &count, &why) != 0)
    return refused(why);
  GemmPlan plan{matrix.rows, cols, {}, false};
  bool found = false;
  for (int i = 0; i < count && !plan.rows_equal; ++i) {
    const GemmChoice& choice = choices[static_cast<size_t>(i)];
    const std::set<int> sizes{1, 2, 7, 64, 300, std::min(most_tokens, 1024), most_tokens};
    const bool fits = std::all_of(sizes.begin(), sizes.end(), [&](int tokens) {
      const GemmShape one = shape(tokens);
      return table_->fits(handle_.get(), &one, &choice, kWorkspace) == 1;
    });
    if (!fits) continue;
    const bool equal = rows_are_equal(matrix.rows, cols, test_tokens(matrix, most_tokens),
                                      [&](const GemmShape& one, const void* x, float* y) {
                                        GemmCall call{one, &choice, copy, x, y, workspace_.data(), kWorkspace, nullptr};
                                        if (table_->run(handle_.get(), &call, &why) != 0)
                                          throw CudaError(why.line, cudaErrorUnknown);
                                      });
    if (!found || equal) {
      plan.choice = choice;
      plan.rows_equal = equal;
    }
    found = true;
  }
  if (!found) return {};
  copy_of_[matrix.data] = {copy, plans_.size()};
  plans_.push_back(plan);
  return {};
}

bool FastLinear::run(const LinearArgs& args, cudaStream_t stream) const {
  if (!args.x.bf16 || args.groups != nullptr || args.x_divisor != 1 || args.bias_factor != nullptr) return false;
  const auto found = copy_of_.find(args.weight.data);
  if (found == copy_of_.end() || args.y_stride % 4 != 0) return false;
  const GemmPlan& plan = plans_[found->second.plan];
  const GemmShape shape{plan.rows, plan.cols, args.tokens, args.x.stride, args.y_stride};
  const GemmCall call{
      shape, &plan.choice, found->second.data, args.x.data, args.y, workspace_.data(), workspace_.size(), stream,
  };
  Text why;
  if (table_->run(handle_.get(), &call, &why) != 0) throw CudaError(why.line, cudaErrorUnknown);
  if (args.bias != nullptr || args.rounded) {
    finish_rows({args.y, args.tokens, plan.rows, args.y_stride, args.bias, args.rounded}, stream);
  }
  return true;
}

std::string FastLinear::version() const {
  return std::string(table_->head.library) + " " + version_text(table_->head.loaded());
}

}  // namespace assay::cuda::vendor
