#include "core/run/simulate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/run/partition.h"

namespace assay::run {
namespace {

// splitmix64: the library's distributions give other numbers on other platforms.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double unit() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)
  size_t below(size_t count) { return static_cast<size_t>(unit() * static_cast<double>(count)); }
  double exponential(double rate) { return rate > 0 ? -std::log(unit()) / rate : INFINITY; }
  double normal() { return std::sqrt(-2 * std::log(unit())) * std::cos(2 * std::numbers::pi * unit()); }

 private:
  uint64_t state_;
};

struct Model {
  double load = 0;            // seconds
  std::vector<double> cases;  // seconds
};

int64_t microseconds(double seconds) { return std::max<int64_t>(1, static_cast<int64_t>(std::round(seconds * 1e6))); }

std::vector<Model> recorded_models(const Durations& durations, size_t* cases) {
  std::map<double, Model> by_load;
  for (const auto& [name, duration] : durations.cases) {
    Model& model = by_load[duration.load_seconds];
    model.load = duration.load_seconds;
    model.cases.push_back(duration.seconds);
    ++*cases;
  }
  std::vector<Model> models;
  for (auto& [load, model] : by_load) models.push_back(std::move(model));
  return models;
}

// Cases of a run and how long each took when it was recorded.
struct Drawn {
  Workload work;
  std::vector<double> seconds;  // parallel to the pieces
  std::vector<double> loads;    // seconds, parallel to the groups
};

Drawn draw(const Durations& durations, const SimulationOptions& options) {
  size_t recorded = 0;
  const std::vector<Model> models = recorded_models(durations, &recorded);
  const size_t groups = options.models > 0 ? options.models : models.size();
  const size_t cases = options.cases > 0 ? options.cases : recorded;
  std::vector<size_t> ends;  // (groups) cases of all models up to here
  Drawn drawn;
  for (size_t g = 0; g < groups; ++g) {
    const Model& model = models[g % models.size()];
    ends.push_back((ends.empty() ? 0 : ends.back()) + model.cases.size());
    drawn.loads.push_back(model.load);
    drawn.work.loads.push_back(model.load > 0 ? microseconds(model.load) : 0);
  }
  Random random(options.seed);
  for (size_t i = 0; i < cases; ++i) {
    const size_t ticket = random.below(ends.back());
    const auto group = static_cast<uint32_t>(std::upper_bound(ends.begin(), ends.end(), ticket) - ends.begin());
    const Model& model = models[group % models.size()];
    drawn.seconds.push_back(model.cases[random.below(model.cases.size())]);
    drawn.work.pieces.push_back({.group = group, .time = microseconds(drawn.seconds.back())});
  }
  return drawn;
}

// The life of one share, on as many workers, one after the other, as it takes.
class Share {
 public:
  Share(const Drawn& drawn, const SimulationOptions& options, uint64_t seed, SimulatedRun* run)
      : drawn_(drawn), options_(options), random_(seed), run_(run) {
    next_loss_ = random_.exponential(options_.loss_rate / 3600);
  }

  // Returns its end, seconds; adds the seconds of cases whose verdicts count to `useful`.
  double live(const std::vector<uint32_t>& pieces, double* useful) {
    for (const uint32_t piece : pieces) {
      const double seconds = drawn_.seconds[piece] * std::exp(options_.noise * random_.normal());
      int attempts = 0;
      while (!ended_ && attempts < kMostAttempts && !once(drawn_.work.pieces[piece].group, seconds)) {
        if (++attempts < kMostAttempts && !ended_) ++run_->again;
      }
      if (ended_ || attempts == kMostAttempts) {
        ++run_->unfinished;
      } else {
        *useful += seconds;
      }
    }
    return now_;
  }

 private:
  // Runs a case, with what has to come before it; false: its worker died.
  bool once(uint32_t group, double seconds) {
    if (!running_) {
      if (!pass(options_.start_seconds)) return false;
      running_ = true;
      loaded_ = -1;
    }
    if (loaded_ != static_cast<int64_t>(group)) {
      ++run_->loads;
      if (!pass(drawn_.loads[group])) return false;
      loaded_ = group;
    }
    return pass(seconds);
  }

  bool pass(double seconds) {
    if (now_ + seconds <= next_loss_) {
      now_ += seconds;
      return true;
    }
    now_ = next_loss_;
    running_ = false;
    ++run_->losses;
    ended_ = !options_.requeue;
    if (options_.requeue) now_ += options_.restart_seconds;
    next_loss_ = now_ + random_.exponential(options_.loss_rate / 3600);
    return false;
  }

  const Drawn& drawn_;
  const SimulationOptions& options_;
  Random random_;
  SimulatedRun* run_;
  double now_ = 0;
  double next_loss_ = 0;
  int64_t loaded_ = -1;
  bool running_ = false;
  bool ended_ = false;
};

}  // namespace

Result<SimulatedRun> simulate(const Durations& durations, uint32_t workers, const SimulationOptions& options) {
  if (durations.cases.empty())
    return invalid("no case with a duration: nothing to simulate; give a run that has finished");
  const Drawn drawn = draw(durations, options);
  const Partition made = partition(drawn.work, workers);
  SimulatedRun run;
  run.workers = workers;
  run.predicted = static_cast<double>(made.longest()) / 1e6;
  std::vector<std::vector<uint32_t>> shares(workers);
  std::vector<bool> used(drawn.loads.size(), false);
  for (uint32_t piece = 0; piece < made.share_of.size(); ++piece) {
    shares[made.share_of[piece]].push_back(piece);
    used[drawn.work.pieces[piece].group] = true;
    run.work += drawn.seconds[piece];
  }
  for (size_t group = 0; group < used.size(); ++group) run.work += used[group] ? drawn.loads[group] : 0;
  double useful = 0;
  Random seeds(options.seed ^ (uint64_t{workers} << 32));
  for (std::vector<uint32_t>& share : shares) {
    std::stable_sort(share.begin(), share.end(),
                     [&](uint32_t a, uint32_t b) { return drawn.work.pieces[a].group < drawn.work.pieces[b].group; });
    run.seconds = std::max(run.seconds, Share(drawn, options, seeds.bits(), &run).live(share, &useful));
  }
  run.utilisation = run.seconds > 0 ? useful / (run.seconds * workers) : 0;
  return run;
}

}  // namespace assay::run
