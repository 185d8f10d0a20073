// A test engine that trains: it acts as the training program itself, as its arguments say. The loss of step s is
// 10 - s / 100. It writes an event file, and checkpoints that hold nothing unless --gradients says what.
//   --train-iters N, --exit-interval N   last step: the smaller of both
//   --save-interval N                    a checkpoint every N steps
//   --drift-at S  --nan-at S  --skip-at S  --stop-at S   what is wrong from or at that step
//   --resume-drift X    added to the loss of a run that resumed       --ignore-load   begins at step 1 all the same
//   --noise X           times the number of this repeat, added to the loss
//   --gradients X  --tp N                checkpoints hold a weight and its gradients, X times the same, of N ranks
//   --exit N  --signal N  --restarts N   how it ends                  --refuse   the engine cannot start it
//   --hang              until the host says `cancelled`, or the time limit
// The option "refuse_to_open" makes it do so. The job lies in folders.logs/job_RUN.json.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "backends/model/checkpoint/torch_dist_writer.h"
#include "core/train/checkpoints.h"
#include "core/train/crc32c.h"
#include "core/train/job.h"

namespace {

namespace fs = std::filesystem;
using assay::Status;
using assay::train::Job;

const assay_host* g_host = nullptr;  // NOLINT: handed over by assay_plugin_query alone
std::string g_message;               // NOLINT: valid until the next call

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

std::string field(char tag, const std::string& bytes) { return tag + varint(bytes.size()) + bytes; }

std::string record(const std::string& data) {
  const std::string length = little(data.size(), 8);
  return length + little(assay::train::masked_crc32c(length), 4) + data + little(assay::train::masked_crc32c(data), 4);
}

std::string scalar(const std::string& tag, int64_t step, float value) {
  const std::string entry = field('\x0a', tag) + '\x15' + little(std::bit_cast<uint32_t>(value), 4);
  return record('\x10' + varint(static_cast<uint64_t>(step)) + field('\x2a', field('\x0a', entry)));
}

class Program {
 public:
  explicit Program(const Job& job) : job_(job) {}

  Status run(assay_training_result* result) {
    std::ofstream(fs::path(job_.folders.logs) / ("job_" + std::to_string(job_.run) + ".json")) << to_json(job_);
    if (has("--refuse")) return assay::infra("no such program");
    const auto begin = std::chrono::steady_clock::now();
    while (has("--hang")) {
      if (g_host->cancelled(g_host->context) != 0) return {assay::StatusCode::kCancelled, "cancelled"};
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      if (job_.time_limit_s > 0 && passed.count() > job_.time_limit_s) {
        g_message = "time limit of " + std::to_string(job_.time_limit_s) + " s reached";
        result->signal = 15;
        result->exit_code = -1;
        result->message = assay::sdk::view(g_message);
        return {};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    steps();
    result->exit_code = static_cast<int32_t>(number("--exit", 0));
    result->signal = static_cast<int32_t>(number("--signal", 0));
    result->restarts = static_cast<int32_t>(number("--restarts", 0));
    if (result->signal != 0) result->exit_code = -1;
    g_message = result->exit_code == 0 ? "" : "the program of the test ended badly";
    result->message = assay::sdk::view(g_message);
    return {};
  }

 private:
  const std::string* value(const std::string& name) const {
    const auto found = std::find(job_.arguments.rbegin(), job_.arguments.rend(), name);  // the last one counts
    return found == job_.arguments.rend() || found == job_.arguments.rbegin() ? nullptr : &*(found - 1);
  }
  bool has(const std::string& name) const {
    return std::find(job_.arguments.begin(), job_.arguments.end(), name) != job_.arguments.end();
  }
  double number(const std::string& name, double otherwise) const {
    const std::string* text = value(name);
    return text == nullptr ? otherwise : std::stod(*text);
  }

  void steps() const {
    const int64_t loaded = has("--ignore-load") ? 0 : assay::train::tracked_iteration(job_.folders.load);
    const auto last = static_cast<int64_t>(std::min(number("--train-iters", 100), number("--exit-interval", 1e9)));
    const auto every = static_cast<int64_t>(number("--save-interval", 1e9));
    std::ofstream events(fs::path(job_.folders.tensorboard) / ("events.out.tfevents." + std::to_string(::getpid())),
                         std::ios::binary);
    events << record('\x1a' + varint(13) + "brain.Event:2");
    for (int64_t step = loaded + 1; step <= last; ++step) {
      const auto at = static_cast<double>(step);
      if (at >= number("--stop-at", 1e9)) break;
      double loss = 10 - at / 100 + number("--noise", 0) * (job_.repeat - 1);
      if (at == number("--drift-at", 0)) loss += 0.001;
      if (at == number("--nan-at", 0)) loss = NAN;
      if (loaded > 0) loss += number("--resume-drift", 0);
      if (at != number("--skip-at", 0)) events << scalar("lm loss", step, static_cast<float>(loss));
      if (step % every == 0) save(step);
    }
  }

  void save(int64_t step) const {
    const fs::path folder(job_.folders.save);
    if (has("--gradients")) return save_gradients(step);
    fs::create_directories(folder / assay::train::iteration_name(step));
    std::ofstream(folder / "latest_checkpointed_iteration.txt") << step;
  }

  // A weight of 2 x 4 that is split between ranks by columns. Its gradient at (r, c) is (1 + 4 r + c) X.
  void save_gradients(int64_t step) const {
    const auto ranks = static_cast<int64_t>(number("--tp", 1));
    const auto weight = [](int64_t at) { return static_cast<float>(at); };
    const auto gradient = [ranks, scale = number("--gradients", 1)](int64_t at) {
      const int64_t part = kColumns / ranks;
      const int64_t row = at / part % kRows;
      const int64_t column = at / (part * kRows) * part + at % part;
      return static_cast<float>(static_cast<double>(1 + kColumns * row + column) * scale);
    };
    const auto tensor = [](const std::string& key, std::vector<int64_t> shape, auto value) {
      assay::model::TensorToWrite made;
      made.key = key;
      made.shape = std::move(shape);
      made.fill = [value](int64_t first, int64_t count, void* out) {
        for (int64_t i = 0; i < count; ++i) static_cast<float*>(out)[i] = value(first + i);
      };
      return made;
    };
    const std::string key = "decoder.layers.mlp.linear_fc2.weight";
    const Status written = assay::model::write_torch_dist(
        job_.folders.save,
        {tensor(key, {1, kRows, kColumns}, weight),
         tensor("optimizer.state.exp_avg." + key, {1, 1, ranks, kRows * kColumns / ranks}, gradient)},
        {}, {.iteration = step});
    if (!written.ok()) std::fprintf(stderr, "%s\n", written.message().c_str());
  }

  static constexpr int64_t kRows = 2;
  static constexpr int64_t kColumns = 4;
  const Job& job_;
};

int32_t open(const assay_engine_config* config, void** engine, assay_error* error) {
  return assay::sdk::guarded(error, [&]() -> Status {
    if (assay::sdk::text(config->options).find("\"refuse_to_open\"") != std::string_view::npos) {
      return assay::invalid("told to refuse");
    }
    *engine = new int(0);
    return {};
  });
}
int32_t submit(void*, const assay_request*, assay_error* error) {
  return assay::sdk::guarded(error, [] { return assay::unsupported("this engine trains"); });
}
int32_t cancel(void*, uint64_t, assay_error*) { return ASSAY_OK; }
int32_t step(void*, const assay_event** events, size_t* count, size_t* pending, assay_error*) {
  *events = nullptr;
  *count = *pending = 0;
  return ASSAY_OK;
}
int32_t reset(void*, assay_error*) { return ASSAY_OK; }
void close(void* engine) { delete static_cast<int*>(engine); }

int32_t train(void*, const assay_training* training, assay_training_result* result, assay_error* error) {
  return assay::sdk::guarded(error, [&]() -> Status {
    const assay::Result<Job> job = assay::train::parse_job(assay::sdk::text(training->job));
    return job ? Program(*job).run(result) : job.status();
  });
}

const assay_engine_table kTable = {
    sizeof(assay_engine_table), 0, open, submit, cancel, step, reset, close, nullptr, train};

const assay_plugin kPlugin = {.magic = ASSAY_PLUGIN_MAGIC,
                              .size = sizeof(assay_plugin),
                              .abi_major = ASSAY_ABI_MAJOR,
                              .abi_minor = ASSAY_ABI_MINOR,
                              .kind = ASSAY_ENGINE,
                              .reserved = 0,
                              .capabilities = ASSAY_CAP_TRAIN,
                              .name = "training",
                              .version = "1",
                              .description = "test engine: trains as its arguments say",
                              .options_schema = "{}",
                              .table = &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t, uint32_t, const assay_host* host) {
  g_host = host;
  return &kPlugin;
}
