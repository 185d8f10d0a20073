#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/run/durations.h"
#include "core/run/shards.h"
#include "core/run/simulate.h"
#include "tools/assay/command.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr uint64_t kMostCases = 10'000'000;
constexpr double kMostSeconds = 1e7;

Result<std::vector<uint32_t>> parse_workers(const std::string& text) {
  std::vector<uint32_t> numbers;
  std::stringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    uint32_t number = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || stop != word.data() + word.size() || number < 1 || number > run::kMostShards) {
      return invalid(
          fmt::format("--workers '{}': expected numbers from 1 to {}, joined by commas", text, run::kMostShards));
    }
    numbers.push_back(number);
  }
  if (numbers.empty()) return invalid("--workers: expected numbers, joined by commas");
  return numbers;
}

Status check(const po::variables_map& values) {
  for (const char* name : {"cases", "models"}) {
    if (values[name].as<int64_t>() < 0 || values[name].as<int64_t>() > static_cast<int64_t>(kMostCases)) {
      return invalid(fmt::format("--{}: expected 0 to {}", name, kMostCases));
    }
  }
  if (values["seed"].as<int64_t>() < 0) return invalid("--seed: expected 0 or more");
  for (const char* name : {"loss-rate", "restart", "start", "noise"}) {
    const double value = values[name].as<double>();
    if (!(value >= 0 && value <= kMostSeconds)) return invalid(fmt::format("--{}: expected 0 to 1e7", name));
  }
  if (values["noise"].as<double>() > 3) return invalid("--noise: expected 0 to 3");
  return {};
}

nlohmann::ordered_json to_json(const run::SimulatedRun& run) {
  return {
      {"workers", run.workers},         {"predicted", run.predicted}, {"seconds", run.seconds}, {"work", run.work},
      {"utilisation", run.utilisation}, {"loads", run.loads},         {"losses", run.losses},   {"again", run.again},
      {"unfinished", run.unfinished}};
}

}  // namespace

int simulate_command(const Words& words) {
  constexpr const char* kUsage = "assay simulate RUN... --workers N,N,... [options]";
  po::options_description description("options");
  description.add_options()("run", po::value<Words>(), "runs, or files, that tell how long cases take")(
      "workers", po::value<std::string>()->default_value("1,8,64,1000"), "how many, one run each")(
      "cases", po::value<int64_t>()->default_value(0), "how many, drawn from the recorded ones (0: as recorded)")(
      "models", po::value<int64_t>()->default_value(0), "how many, recorded ones in turn (0: as recorded)")(
      "loss-rate", po::value<double>()->default_value(0), "workers lost, per worker and hour")(
      "requeue", "a lost worker is replaced")("restart", po::value<double>()->default_value(120),
                                              "seconds from the loss of a worker to the start of the next")(
      "start", po::value<double>()->default_value(1), "seconds that a worker takes before its first load")(
      "noise", po::value<double>()->default_value(0.1), "spread of case times: deviation of the logarithm")(
      "seed", po::value<int64_t>()->default_value(1), "of the random numbers")("json", "one JSON object a line");
  po::variables_map values;
  if (const auto code = parse(kUsage, description, "run", words, &values)) return *code;
  const Result<std::vector<uint32_t>> workers = parse_workers(values["workers"].as<std::string>());
  if (!workers) return fail(workers.status());
  if (Status status = check(values); !status.ok()) return fail(status);
  const Words runs = all(values, "run");
  if (runs.empty()) return refuse(kUsage, "simulate: no RUN given");
  run::Durations durations;
  for (const std::string& path : runs) {
    Result<run::Durations> read = run::read_durations(path);
    if (!read) return fail(read.status());
    for (auto& [name, duration] : read->cases) durations.cases.insert_or_assign(name, duration);
  }
  const run::SimulationOptions options{.cases = static_cast<size_t>(values["cases"].as<int64_t>()),
                                       .models = static_cast<size_t>(values["models"].as<int64_t>()),
                                       .loss_rate = values["loss-rate"].as<double>(),
                                       .requeue = values.count("requeue") != 0,
                                       .start_seconds = values["start"].as<double>(),
                                       .restart_seconds = values["restart"].as<double>(),
                                       .noise = values["noise"].as<double>(),
                                       .seed = static_cast<uint64_t>(values["seed"].as<int64_t>())};
  const bool json = values.count("json") != 0;
  if (!json) {
    std::cout << fmt::format("{:>8} {:>12} {:>12} {:>12} {:>6} {:>8} {:>8} {:>8} {:>11}\n", "workers", "work s",
                             "predicted s", "seconds", "used", "loads", "losses", "again", "unfinished");
  }
  for (const uint32_t count : *workers) {
    const Result<run::SimulatedRun> made = run::simulate(durations, count, options);
    if (!made) return fail(made.status());
    if (json) {
      std::cout << to_json(*made).dump() << "\n";
    } else {
      std::cout << fmt::format("{:>8} {:>12.1f} {:>12.1f} {:>12.1f} {:>5.1f}% {:>8} {:>8} {:>8} {:>11}\n",
                               made->workers, made->work, made->predicted, made->seconds, 100 * made->utilisation,
                               made->loads, made->losses, made->again, made->unfinished);
    }
    std::cout << std::flush;
  }
  return kExitOk;
}

}  // namespace assay::cli
