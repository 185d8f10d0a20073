#include "backends/cuda/vendor/fast_attention.h"

#include <algorithm>

#include "backends/cuda/vendor/vendor_object.h"

namespace assay::cuda::vendor {
namespace {

constexpr int kStartStep = 1024;  // positions at which a run may begin
constexpr int kLeastQueries = 128;

// Queries are padded to one of few counts, since each needs a plan of its own. A causal mask keeps padded keys, which
// come last, out of every real query.
int padded(int queries) {
  if (queries <= 4 * kLeastQueries) return round_up(queries, kLeastQueries);
  if (queries <= 16 * kLeastQueries) return round_up(queries, 2 * kLeastQueries);
  return round_up(queries, 4 * kLeastQueries);
}

void grow(DeviceBuffer<std::byte>& buffer, uint64_t bytes, cudaStream_t stream) {
  if (buffer.size() >= bytes) return;
  check(cudaStreamSynchronize(stream), "cuDNN attention");
  buffer.reserve(bytes);
}

}  // namespace

Result<FastAttention> FastAttention::open(const std::vector<std::filesystem::path>& folders,
                                          const AttentionShape& heads, const RunTokens& tokens) {
  if (heads.channels != 64 && heads.channels != 128) {
    return unsupported("cuDNN: heads of " + std::to_string(heads.channels) + " channels, expected 64 or 128");
  }
  Result<const TableHead*> head = open_object(kCudnn, folders);
  if (!head) return head.status();
  FastAttention attention;
  attention.table_ = reinterpret_cast<const AttentionTable*>(*head);
  attention.heads_ = heads;
  void* handle = nullptr;
  Text why;
  if (attention.table_->open(&handle, &why) != 0) return unsupported(std::string("cuDNN: ") + why.line);
  attention.handle_ = {handle, attention.table_->close};
  const int most = padded(std::max(tokens.least, tokens.most));
  for (int queries = padded(tokens.least); queries <= most; queries = padded(queries + 1)) {
    if (attention.plan_of(queries, queries).plan == nullptr) {
      return unsupported("cuDNN: no plan for " + std::to_string(queries) + " tokens: " + attention.refusal_);
    }
  }
  return attention;
}

const FastAttention::Plan& FastAttention::plan_of(int queries, int keys) {
  const auto [found, fresh] = plans_.try_emplace({queries, keys});
  if (!fresh) return found->second;
  AttentionShape shape = heads_;
  shape.queries = queries;
  shape.keys = keys;
  void* plan = nullptr;
  Text name;
  Text why;
  if (table_->plan(handle_.get(), &shape, &plan, &found->second.workspace, &name, &why) != 0) {
    refusal_ = why.line;
  } else {
    found->second.plan = {plan, table_->drop};
    engine_ = name.line;
  }
  return found->second;
}

bool FastAttention::run(const AttendArgs& args, const RunPlace& run, cudaStream_t stream) {
  const CacheView& cache = args.cache;
  const bool same = cache.channels == heads_.channels && cache.groups == heads_.groups &&
                    cache.groups * args.per_group == heads_.heads;
  if (!same || !cache.bf16 || !args.y.bf16 || run.start % kStartStep != 0) return false;
  const int queries = padded(run.count);
  const int keys = run.start + queries;
  const Plan& plan = plan_of(queries, keys);
  if (plan.plan == nullptr) return false;

  const auto vector = static_cast<uint64_t>(heads_.channels) * sizeof(uint16_t);
  const uint64_t query_bytes = vector * static_cast<uint64_t>(heads_.heads) * static_cast<uint64_t>(queries);
  const uint64_t key_bytes = vector * static_cast<uint64_t>(heads_.groups) * static_cast<uint64_t>(keys);
  grow(k_, key_bytes, stream);
  grow(v_, key_bytes, stream);
  grow(workspace_, plan.workspace, stream);

  // Without padding, queries are read and results written where they are.
  const auto width = static_cast<ptrdiff_t>(heads_.heads) * heads_.channels;
  AttentionCall call{nullptr, k_.data(), v_.data(), nullptr, args.scale, workspace_.data(), stream};
  const bool in_place = run.count == queries && args.y.stride == width;
  if (in_place) {
    call.q = static_cast<const uint16_t*>(args.queries) + run.first * width;
    call.o = static_cast<uint16_t*>(args.y.data) + run.first * width;
  } else {
    grow(q_, query_bytes, stream);
    grow(o_, query_bytes, stream);
    call.q = q_.data();
    call.o = o_.data();
  }
  gather_heads(args, run, {in_place ? nullptr : q_.data(), k_.data(), v_.data(), queries, keys}, stream);
  Text why;
  if (table_->run(handle_.get(), plan.plan.get(), &call, &why) != 0) throw CudaError(why.line, cudaErrorUnknown);
  if (!in_place) scatter_rows(args, run, o_.data(), stream);
  return true;
}

std::string FastAttention::version() const {
  return std::string(table_->head.library) + " " + version_text(table_->head.loaded());
}

uint64_t FastAttention::bytes() const { return q_.size() + k_.size() + v_.size() + o_.size() + workspace_.size(); }

}  // namespace assay::cuda::vendor
