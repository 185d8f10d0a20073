#include "backends/cuda/weight_upload.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "backends/cuda/kernels/pack.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/pinned_pages.h"
#include "backends/cuda/runtime/stream.h"
#include "backends/model/weights/storage_order.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda {
namespace {

constexpr int64_t kJobBytes = int64_t{4} << 20;

void finish_vector(const UploadJob& job, float* values) {
  for (int64_t i = 0; i < (job.end - job.begin) * job.ref->cols && job.finish != Finish::kNone; ++i) {
    if (job.finish != Finish::kAddOne) values[i] = arithmetic::round_bf16(values[i]);
    if (job.finish != Finish::kRound) values[i] = values[i] + 1.0f;
  }
}

constexpr size_t kSlots = 2;  // a thread

// One thread's slots: while one is copied, the other is read into.
class Lane {
 public:
  // `device` has room for kSlots jobs of up to `bytes` and outlives the lane.
  Lane(std::byte* device, size_t bytes) : pinned_(bytes * kSlots) {
    for (size_t i = 0; i < kSlots; ++i) {
      slots_[i].pinned = pinned_.data() + i * bytes;
      slots_[i].rows = device + i * bytes;
      slots_[i].free.record(stream_);
    }
  }
  ~Lane() { cudaStreamSynchronize(stream_.get()); }  // after a failure, copies may still read the slots

  Status upload(model::CheckpointStream& files, const UploadJob& job) {
    Slot& slot = slots_[turn_++ % kSlots];
    slot.free.wait();
    Status status = model::stream_weight_rows(files, reader_, *job.ref, {job.begin, job.end, job.dtype, slot.pinned});
    if (!status.ok()) return status;
    if (job.finish != Finish::kNone) finish_vector(job, reinterpret_cast<float*>(slot.pinned));
    std::byte* to = job.to + static_cast<size_t>(job.begin * job.ref->cols) * model::dtype_size(job.dtype);
    if (job.tiles.tiled) to = slot.rows;
    check(cudaMemcpyAsync(to, slot.pinned, job.bytes(), cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
    if (job.tiles.tiled) {
      pack_tiles({job.tiles, to, static_cast<int>(job.begin), static_cast<int>(job.end - job.begin)}, stream_.get());
    }
    slot.free.record(stream_);
    return status;
  }

  void wait() const { stream_.wait(); }

 private:
  struct Slot {
    std::byte* pinned = nullptr;
    std::byte* rows = nullptr;  // on the device: what is packed from
    Event free;
  };
  model::CheckpointStream::Reader reader_;
  PinnedPages pinned_;
  Stream stream_;
  std::array<Slot, kSlots> slots_;
  size_t turn_ = 0;
};

void sort_by_place(const model::Checkpoint& checkpoint, std::vector<UploadJob>& jobs) {
  using Place = std::pair<uint32_t, uint64_t>;
  model::StorageOrder order(checkpoint.contents());
  std::vector<std::pair<Place, UploadJob>> placed;
  placed.reserve(jobs.size());
  for (const UploadJob& job : jobs) placed.emplace_back(order.place(*job.ref, job.begin), job);
  std::ranges::stable_sort(placed, {}, [](const auto& entry) { return entry.first; });
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i] = placed[i].second;
}

}  // namespace

int64_t rows_a_job(int64_t rows, int64_t row_bytes) {
  const int64_t jobs =
      std::clamp<int64_t>((rows * row_bytes + kJobBytes - 1) / kJobBytes, 1, std::max<int64_t>(rows, 1));
  return (rows + jobs - 1) / jobs;
}

Status upload_all(const model::Checkpoint& checkpoint, std::vector<UploadJob> jobs, const Device& device, int threads) {
  sort_by_place(checkpoint, jobs);
  size_t bytes = 0;  // of a slot; a multiple of what vectors are copied in
  for (const UploadJob& job : jobs) bytes = std::max(bytes, (job.bytes() + 255) / 256 * 256);
  const size_t lane_bytes = bytes * kSlots;
  const DeviceBuffer<std::byte> rows(lane_bytes * static_cast<size_t>(threads));
  model::CheckpointStream files(checkpoint);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status status;
  const auto work = [&](int thread) {
    const Status done = on_device([&]() -> Status {
      use_device(device);
      Lane lane(rows.data() + lane_bytes * static_cast<size_t>(thread), bytes);
      for (size_t i = next.fetch_add(1); i < jobs.size(); i = next.fetch_add(1)) {
        if (Status read = lane.upload(files, jobs[i]); !read.ok()) return read;
      }
      lane.wait();
      return {};
    });
    if (done.ok()) return;
    const std::scoped_lock lock(mutex);
    if (status.ok()) status = done;
    next = jobs.size();
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  others.clear();  // joins
  if (status.ok()) status = files.finish();
  checkpoint.drop_pages();
  return status;
}

}  // namespace assay::cuda
