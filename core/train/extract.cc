#include "core/train/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <string_view>
#include <system_error>

#include "core/train/metric_file.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kConvergenceStep = 5;
constexpr int64_t kFirstStep = 1;
constexpr std::array<std::string_view, 8> kKnown = {"iteration-time", "mem-allocated-bytes", "mem-max-allocated-bytes",
                                                    "lm loss",        "num-zeros",           "mtp_1 loss",
                                                    "mtp_2 loss",     "total loss"};

struct Found {
  fs::file_time_type written;
  std::string path;
};

bool absent(const std::error_code& code) {
  return code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory;
}

// Adds those of a folder, where there is one. Fails with kInfra.
Status find_files(const fs::path& folder, std::vector<Found>* found) {
  std::error_code code;
  fs::directory_iterator at(folder, code);
  if (absent(code)) return {};
  for (; !code && at != fs::directory_iterator(); at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("events") || name.find("tfevents", std::string_view("events").size()) == std::string::npos) {
      continue;
    }
    std::error_code of_file;
    if (fs::is_regular_file(at->path(), of_file)) {
      found->push_back({fs::last_write_time(at->path(), of_file), at->path().string()});
    }
    if (of_file && !absent(of_file)) return infra(at->path().string() + ": " + of_file.message());
  }
  return code ? infra(fmt::format("{}: cannot be listed: {}", folder.string(), code.message())) : Status();
}

bool has_scalars(const EventFile& file) { return !file.tags.empty() || !file.corrupt.ok(); }

// Interval of the steps, the first one apart.
int64_t interval_of(const std::vector<StepValue>& values, int64_t otherwise) {
  int64_t interval = 0;
  int64_t previous = 0;
  size_t seen = 0;
  for (const StepValue& value : values) {
    if (value.step == kFirstStep) continue;
    if (seen++ > 0) interval = std::gcd(interval, value.step - previous);
    previous = value.step;
  }
  return seen < 2 ? otherwise : interval;
}

bool simple(const EventFile& file) {
  return std::any_of(file.tags.begin(), file.tags.end(), [](const ScalarTag& tag) { return tag.simple; });
}

// `megatron`: its view of `files`, else ours.
MetricSet extract_values(const std::vector<EventFile>& files, const Grid& grid, bool megatron) {
  std::vector<std::string> order;
  std::map<std::string, std::map<int64_t, double>> summaries;
  for (const EventFile& file : files) {
    if (megatron && !simple(file)) continue;
    for (const ScalarTag& tag : file.tags) {
      if (megatron && !tag.simple) continue;
      const auto [place, is_new] = summaries.try_emplace(tag.name);
      if (is_new) order.push_back(tag.name);
      for (const ScalarPoint& point : tag.points) {
        if (megatron && !point.simple) continue;
        if (is_new) {
          place->second.insert_or_assign(point.step, round5(point.value));
        } else {
          place->second.try_emplace(point.step, round5(point.value));
        }
      }
    }
    if (!grid.merge) break;
  }
  MetricSet set;
  for (const std::string& name : order) {
    const bool known = std::any_of(kKnown.begin(), kKnown.end(), [&](std::string_view metric) {
      return megatron ? name == metric : spelled_alike(name, metric);
    });
    if (!known) continue;
    Metric metric;
    metric.name = name;
    for (const auto& [step, value] : summaries[name]) {
      if (step < kFirstStep || step > grid.train_iters) continue;
      if (step == kFirstStep || step % grid.step_size == 0) metric.values.push_back({step, value, false});
    }
    if (metric.values.empty()) continue;
    metric.start_step = metric.values.front().step;
    metric.end_step = metric.values.back().step;
    metric.step_interval = interval_of(metric.values, grid.step_size);
    set.metrics.push_back(std::move(metric));
  }
  return set;
}

}  // namespace

Grid convergence_grid(int64_t train_iters) {
  return {.train_iters = train_iters, .step_size = kConvergenceStep, .merge = true};
}

Result<std::vector<EventFile>> read_event_folder(const std::string& folder) {
  std::vector<Found> found;
  for (const fs::path& place : {fs::path(folder), fs::path(folder) / "results"}) {
    if (Status listed = find_files(place, &found); !listed.ok()) return listed;
  }
  if (found.empty()) {
    return not_found(
        fmt::format("{}: no TensorBoard event file (events*tfevents*) there; the program has to write "
                    "them, with --tensorboard-dir ${{TENSORBOARD_PATH}}",
                    folder));
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return std::tie(a.written, a.path) < std::tie(b.written, b.path); });
  std::vector<EventFile> files;
  for (const Found& one : found) {
    Result<EventFile> file = read_event_file(one.path);
    if (!file) return file.status();
    if (has_scalars(*file)) files.push_back(*std::move(file));
  }
  if (files.empty())
    return not_found(fmt::format("{}: none of its {} event files holds a scalar", folder, found.size()));
  return files;
}

Result<MetricSet> extract(const std::vector<EventFile>& files, const Grid& grid) {
  const size_t used = grid.merge ? files.size() : 1;
  for (size_t i = 0; i < used; ++i) {
    if (!files[i].corrupt.ok()) return files[i].corrupt;
  }
  MetricSet set = extract_values(files, grid, /*megatron=*/false);
  for (size_t i = 0; i < used; ++i) {
    if (!files[i].torn.empty()) set.notes.push_back(files[i].torn);
  }
  if (used < files.size()) {
    set.notes.push_back(
        fmt::format("{} event files hold scalars, the first one counts: {}", files.size(), files.front().path));
  }
  return set;
}

std::optional<MetricSet> extract_as_megatron(const std::vector<EventFile>& files, const Grid& grid) {
  if (std::none_of(files.begin(), files.end(), simple)) return std::nullopt;
  MetricSet set = extract_values(files, grid, /*megatron=*/true);
  for (const Metric& metric : set.metrics) {  // its writer refuses numbers that JSON lacks
    if (std::any_of(metric.values.begin(), metric.values.end(), [](const StepValue& v) { return !v.finite(); })) {
      return std::nullopt;
    }
  }
  return set;
}

Result<MetricSet> extract_folder(const std::string& folder, const Grid& grid) {
  const Result<std::vector<EventFile>> files = read_event_folder(folder);
  return files ? extract(*files, grid) : files.status();
}

}  // namespace assay::train
