#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/plugin/host.h"
#include "tools/assay/bench_numbers.h"
#include "tools/assay/command.h"
#include "tools/bench/measure.h"
#include "tools/load_bench/load_bench.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr const char* kBenchUsage = "assay bench decode|prefill|load [CASE] [options] [-- MODEL_ARGS]";

// A device or a memory that is too small is no wrong command line.
int fail_measuring(const Status& status) {
  const int code = fail(status);
  return status.code() == StatusCode::kExhausted ? kExitInfra : code;
}

void print(const bench::BenchReport& report, bool json) {
  std::cout << (json ? bench::to_json_lines(report) : bench::to_text(report));
}

Result<bench::BenchReport> measure(const std::string& what, const bench::Opened& opened,
                                   plugin::PluginRegistry& registry, const BenchNumbers& numbers, bool kernels) {
  if (what == "prefill") {
    return bench::measure_prefill(opened, {.tokens = numbers.contexts, .rounds = numbers.rounds, .kernels = kernels});
  }
  return bench::measure_decode(opened, registry,
                               {.contexts = numbers.contexts,
                                .concurrency = numbers.concurrency,
                                .steps = numbers.steps,
                                .rounds = numbers.rounds,
                                .kernels = kernels});
}

// Loads the subject's checkpoint again and again.
Result<std::string> measure_load(const bench::Subject& subject, const bench::OpenRequest& request,
                                 plugin::PluginRegistry& registry, const tools::LoadBenchOptions& options, bool json) {
  std::optional<bench::Opened> opened;
  std::string backend;
  std::string device;
  const tools::Loader loader{.open = [&]() -> Status {
                               Result<bench::Opened> made = bench::Opened::open(subject, request, registry);
                               if (!made) return made.status();
                               backend = made->backend();
                               device = made->model().device();
                               opened = *std::move(made);
                               return {};
                             },
                             .close = [&] { opened.reset(); }};
  const auto found = tools::measure_load(subject.checkpoint, loader, options);
  if (!found) return found.status();
  double best = found->rounds.front().load_seconds;
  for (const tools::LoadRound& round : found->rounds) best = std::min(best, round.load_seconds);
  if (json) {
    const nlohmann::ordered_json line = {{"what", "load"},
                                         {"backend", backend},
                                         {"device", device},
                                         {"cold", options.cold},
                                         {"seconds", best},
                                         {"first_seconds", found->first_load_seconds},
                                         {"rounds", found->rounds.size()},
                                         {"tensor_bytes", found->tensor_bytes},
                                         {"file_bytes", found->file_bytes},
                                         {"gb_per_s", found->best_load_gb_per_s()},
                                         {"raw_gb_per_s", found->best_raw_gb_per_s()},
                                         {"fraction", found->fraction()},
                                         {"host_peak_bytes", found->peak_bytes}};
    return line.dump() + "\n";
  }
  return fmt::format(
      "{}\nbackend {} on {}\nfirst load {:.2f} s; then the fastest of {}: {:.2f} s, {:.2f} GB/s of {:.2f} GB of "
      "weights\n"
      "the same files read by {} threads that do nothing else, {}: {:.2f} GB/s; loading reaches {:.1f} %\n"
      "host memory above the mapping of the files, peak: {:.2f} GB\n",
      subject.checkpoint, backend, device, found->first_load_seconds, found->rounds.size(), best,
      found->best_load_gb_per_s(), static_cast<double>(found->tensor_bytes) * 1e-9, options.threads,
      options.cold ? "cold" : "warm", found->best_raw_gb_per_s(), 100 * found->fraction(),
      static_cast<double>(found->peak_bytes) * 1e-9);
}

int run(const std::string& what, const bench::SubjectSources& sources, const po::variables_map& values) {
  const Result<BenchNumbers> numbers = read_bench_numbers(what, values);
  if (!numbers) return fail(numbers.status());
  if (what == "load" && sources.random)
    return fail(invalid("--random-weights: nothing is loaded then; give a checkpoint"));
  const Result<bench::Subject> subject = bench::find_subject(sources);
  if (!subject) return fail(subject.status());
  if (const Status fits = check_positions(what, *numbers, subject->config); !fits.ok()) return fail(fits);
  bench::OpenRequest request{.backend = values["backend"].as<std::string>(),
                             .options = values["backend-options"].as<std::string>()};
  if (sources.random) request.random = numbers->seed;
  const bool json = values.count("json") != 0;
  plugin::PluginRegistry registry(search_options(values));
  if (what == "load") {
    const tools::LoadBenchOptions options{
        .threads = numbers->read_threads, .rounds = numbers->rounds, .cold = values.count("cold") != 0};
    const Result<std::string> text = measure_load(*subject, request, registry, options, json);
    if (!text) return fail_measuring(text.status());
    std::cout << *text;
    return kExitOk;
  }
  const Result<bench::Opened> opened = bench::Opened::open(*subject, request, registry);
  if (!opened) return fail_measuring(opened.status());
  const Result<bench::BenchReport> report = measure(what, *opened, registry, *numbers, values.count("no-kernels") == 0);
  if (!report) return fail_measuring(report.status());
  print(*report, json);
  return kExitOk;
}

// A mapped file that was cut, or a disk that failed, ends the process with this signal. Only write and _exit are safe.
void bus_error(int) {
  constexpr std::string_view kText =
      "assay: bench: bus error: a file of the checkpoint was cut while it was read, or its disk failed; copy it "
      "again\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kExitInfra);
}

// --random-weights alone has seed 1: what follows it is taken only where it is a number.
Words with_seeds(Words words) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const bool number = i + 1 < words.size() && !words[i + 1].empty() &&
                        words[i + 1].find_first_not_of("0123456789") == std::string::npos;
    if (words[i] == "--random-weights" && !number) words[i] += "=1";
  }
  return words;
}

}  // namespace

int bench_command(const Words& given_words) {
  std::signal(SIGBUS, bus_error);
  const Words words = with_seeds(given_words);
  po::options_description options(
      "Measures a model on a backend, beside what the machine's memory gives in the same run.\n"
      "decode: single tokens; prefill: prompts up to the likeliest next id; load: a checkpoint.\n"
      "MODEL_ARGS stand for a case: assay bench decode --random-weights -- --num-layers 27 --bf16 ...\noptions");
  options.add_options()("words", po::value<Words>(), "what is measured, and a case folder")(
      "checkpoint", po::value<std::string>()->default_value(""), "folder of the weights (default: what --load says)")(
      "random-weights", po::value<std::string>()->implicit_value("1"),
      "=SEED: made-up weights; on a GPU no file is read, else a temporary checkpoint is written")(
      "backend", po::value<std::string>()->default_value("auto"), "cuda, cpu, reference, or auto")(
      "backend-options", po::value<std::string>()->default_value(""), "JSON object, e.g. {\"threads\":2}")(
      "context", po::value<std::string>()->default_value(""),
      "decode: tokens before the first step (128); prefill: tokens of the prompt (128,1024)")(
      "concurrency", po::value<std::string>()->default_value("1"),
      "decode: requests at once; more than one go through engine buffered")(
      "steps", po::value<int>()->default_value(32), "decode: tokens of a round")(
      "rounds", po::value<int>()->default_value(5), "rounds that count, after one that does not")(
      "no-kernels", "leave out the table of kernels")("cold",
                                                      "load: from the disk, not from the system's cache of files")(
      "read-threads", po::value<int>()->default_value(16), "load: of the raw read beside it")(
      "set", po::value<Words>(), "NAME=VALUE: a variable that the case names as ${NAME}; repeatable")(
      "plugin-path", po::value<Words>(), "folder to look for plugins in first; repeatable")("json",
                                                                                            "one JSON object a line");
  const auto dashes = std::find(words.begin(), words.end(), "--");
  po::variables_map values;
  if (const auto code = parse(kBenchUsage, options, "words", Words(words.begin(), dashes), &values)) return *code;
  Words given = all(values, "words");
  const std::string what = given.empty() ? "" : given.front();
  if (what != "decode" && what != "prefill" && what != "load") {
    return refuse(kBenchUsage, (what.empty() ? "bench: nothing" : "bench: '" + what + "'") +
                                   " to measure, expected decode, prefill or load");
  }
  given.erase(given.begin());
  if (dashes != words.end() && !given.empty()) {
    return refuse(kBenchUsage, "bench: a case and MODEL_ARGS together, expected one of them");
  }
  if (dashes != words.end()) given.assign(dashes + 1, words.end());
  const auto settings = parse_settings(all(values, "set"));
  if (!settings) return fail(settings.status());
  bench::SubjectSources sources{.words = std::move(given),
                                .checkpoint = values["checkpoint"].as<std::string>(),
                                .random = values.count("random-weights") != 0,
                                .variables = {}};
  sources.variables.set.insert(settings->begin(), settings->end());
  for (const auto& [name, value] : environment()) sources.variables.environment.emplace(name, value);
  return run(what, sources, values);
}

}  // namespace assay::cli
