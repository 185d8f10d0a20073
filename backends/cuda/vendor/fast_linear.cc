#include "backends/cuda/vendor/fast_linear.h"

#include <algorithm>
#include <array>

#include "backends/cuda/vendor/layouts.h"
#include "backends/cuda/vendor/row_equality.h"
#include "backends/cuda/vendor/vendor_object.h"

namespace assay::cuda::vendor {
namespace {

constexpr uint64_t kWorkspace = uint64_t{32} << 20;  // bytes
constexpr uint64_t kAlignment = 256;
constexpr int64_t kTestBytes = int64_t{256} << 20;         // of results in the test of equal rows
constexpr int kRangeEnds[] = {128, 256, 512, 1024, 4096};  // tokens
constexpr int kTypicalTokens = 1024;

uint64_t copy_bytes(const Matrix& m) {
  const uint64_t bytes = uint64_t{2} * static_cast<uint64_t>(m.rows) * static_cast<uint64_t>(round_up(m.cols, kTile));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// What cuBLASLt's fast kernels ask of alignment.
bool suits(const Matrix& m) { return m.tiled && m.rows % 4 == 0; }

std::string shape_text(int rows, int cols) { return std::to_string(rows) + " x " + std::to_string(cols); }

GemmShape shape_of(const GemmPlan& plan, int tokens) { return {plan.rows, plan.cols, tokens, plan.cols, plan.rows}; }

Status refused(const Text& why) { return infra(std::string("cuBLASLt: ") + why.line); }

}  // namespace

const GemmChoice& GemmPlan::choice(int tokens) const {
  for (const Range& range : ranges) {
    if (tokens <= range.tokens) return range.choice;
  }
  return ranges.back().choice;
}

std::string GemmPlan::text() const {
  std::string text = shape_text(rows, cols) + ":";
  for (const Range& range : ranges) {
    text += std::string(&range == &ranges.front() ? " " : ", ") + range.choice.name;
    if (ranges.size() > 1) text += " to " + std::to_string(range.tokens) + " tokens";
  }
  return text;
}

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
    if (m.data == nullptr || !seen.insert(m.data).second) continue;
    if (!suits(m)) {
      linear.left_out_.insert(shape_text(m.rows, m.cols));
      continue;
    }
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

Result<std::vector<GemmChoice>> FastLinear::choices(const GemmShape& shape) const {
  constexpr int kMost = 16;
  std::vector<GemmChoice> found(kMost);
  int32_t count = 0;
  Text why;
  if (table_->choose(handle_.get(), &shape, kWorkspace, kMost, found.data(), &count, &why) != 0) return refused(why);
  found.resize(static_cast<size_t>(count));
  return found;
}

bool FastLinear::fits(const GemmPlan& plan, const GemmChoice& choice, int tokens) const {
  const GemmShape shape = shape_of(plan, tokens);
  return table_->fits(handle_.get(), &shape, &choice, kWorkspace) == 1;
}

bool FastLinear::rows_equal(const GemmPlan& plan, const void* copy, int tested) const {
  return rows_are_equal(plan.rows, plan.cols, tested, [&](const GemmShape& shape, const void* x, float* y) {
    run_call({.shape = shape, .choice = &plan.choice(shape.tokens), .weight = copy, .x = x, .y = y});
  });
}

// The library's first proposal for each range.
Status FastLinear::choose_ranges(GemmPlan& plan, int tested, int most_tokens) const {
  int begin = 1;
  for (const int end : kRangeEnds) {
    const int last = end < tested ? end : most_tokens;
    const Result<std::vector<GemmChoice>> found = choices(shape_of(plan, std::min(end, tested)));
    if (!found) return found.status();
    const auto first = std::find_if(found->begin(), found->end(), [&](const GemmChoice& choice) {
      return fits(plan, choice, begin) && fits(plan, choice, last);
    });
    if (first == found->end()) plan.ranges.clear();
    if (first == found->end()) return {};
    plan.ranges.push_back({last, *first});
    if (last == most_tokens) return {};
    begin = end + 1;
  }
  return {};
}

// The first proposal for a typical number of tokens that fits all others, too, one with equal rows before one without.
Status FastLinear::choose_one(GemmPlan& plan, const void* copy, int tested, int most_tokens) const {
  const Result<std::vector<GemmChoice>> found = choices(shape_of(plan, std::min(kTypicalTokens, most_tokens)));
  if (!found) return found.status();
  plan.ranges.clear();
  for (const GemmChoice& choice : *found) {
    GemmPlan one{plan.rows, plan.cols, {{most_tokens, choice}}};
    const auto fits_all = [&](int tokens) { return fits(plan, choice, std::min(tokens, most_tokens)); };
    if (!fits_all(1) || !std::all_of(std::begin(kRangeEnds), std::end(kRangeEnds), fits_all)) continue;
    one.rows_equal = rows_equal(one, copy, tested);
    if (plan.ranges.empty() || one.rows_equal) plan = one;
    if (plan.rows_equal) break;
  }
  return {};
}

Status FastLinear::add_plan(const Matrix& matrix, const void* copy, int most_tokens) {
  GemmPlan plan{matrix.rows, round_up(matrix.cols, kTile)};
  const auto same = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const GemmPlan& p) { return p.rows == plan.rows && p.cols == plan.cols; });
  if (same != plans_.end()) {
    copy_of_[matrix.data] = {copy, static_cast<size_t>(same - plans_.begin())};
    return {};
  }
  const int64_t room = kTestBytes / (int64_t{plan.rows} * static_cast<int64_t>(sizeof(float)));
  const int tested = static_cast<int>(std::clamp<int64_t>(room, 1, most_tokens));
  if (Status status = choose_ranges(plan, tested, most_tokens); !status.ok()) return status;
  plan.rows_equal = !plan.ranges.empty() && rows_equal(plan, copy, tested);
  if (!plan.rows_equal) {
    if (Status status = choose_one(plan, copy, tested, most_tokens); !status.ok()) return status;
  }
  if (plan.ranges.empty()) {
    left_out_.insert(shape_text(matrix.rows, matrix.cols));
    return {};
  }
  copy_of_[matrix.data] = {copy, plans_.size()};
  plans_.push_back(std::move(plan));
  return {};
}

void FastLinear::run_call(GemmCall call) const {
  call.workspace = workspace_.data();
  call.workspace_bytes = workspace_.size();
  Text why;
  if (table_->run(handle_.get(), &call, &why) != 0) throw CudaError(why.line, cudaErrorUnknown);
}

bool FastLinear::run(const LinearArgs& args, cudaStream_t stream) const {
  if (!args.x.bf16 || args.groups != nullptr || args.x_divisor != 1 || args.bias_factor != nullptr) return false;
  if (args.onto && (args.bias != nullptr || args.rounded)) return false;  // these come before the sum
  const auto found = copy_of_.find(args.weight.data);
  if (found == copy_of_.end() || args.y_stride % 4 != 0) return false;
  const GemmPlan& plan = plans_[found->second.plan];
  const GemmShape shape{plan.rows, plan.cols, args.tokens, args.x.stride, args.y_stride};
  run_call({.shape = shape,
            .choice = &plan.choice(args.tokens),
            .weight = found->second.data,
            .x = args.x.data,
            .y = args.y,
            .onto = args.onto ? 1 : 0,
            .stream = stream});
  if (args.bias != nullptr || args.rounded) {
    finish_rows({args.y, args.tokens, plan.rows, args.y_stride, args.bias, args.rounded}, stream);
  }
  return true;
}

std::string FastLinear::version() const {
  return std::string(table_->head.library) + " " + version_text(table_->head.loaded());
}

}  // namespace assay::cuda::vendor
