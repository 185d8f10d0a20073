#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <iostream>
#include <thread>

#include "tools/bandwidth/read_bandwidth.h"

namespace po = boost::program_options;

int main(int argc, char** argv) {
  size_t mebibytes = 0;
  int threads = 0;
  int passes = 0;
  po::options_description options("bandwidth: how fast this machine reads memory");
  options.add_options()("help", "print this help")("mib", po::value(&mebibytes)->default_value(1024),
                                                   "size of the memory read, MiB")(
      "threads", po::value(&threads)->default_value(static_cast<int>(std::thread::hardware_concurrency())),
      "threads that read")("passes", po::value(&passes)->default_value(9), "passes over the memory")(
      "json", "print one JSON object");
  po::variables_map values;
  try {
    po::store(po::parse_command_line(argc, argv, options,
                                     po::command_line_style::unix_style & ~po::command_line_style::allow_guessing),
              values);
    po::notify(values);
    if (mebibytes < 1 || threads < 1 || passes < 1) throw po::error("--mib, --threads and --passes must be at least 1");
  } catch (const po::error& error) {
    std::cerr << "bandwidth: " << error.what() << "\n";
    return 2;
  }
  if (values.count("help") != 0) {
    std::cout << options;
    return 0;
  }
  try {
    const auto rate = assay::tools::measure_read_bandwidth(mebibytes << 20, threads, passes);
    if (values.count("json") != 0) {
      fmt::print("{{\"mib\":{},\"threads\":{},\"best_gb_per_s\":{:.2f},\"median_gb_per_s\":{:.2f}}}\n", mebibytes,
                 threads, rate.best_gb_per_s, rate.median_gb_per_s);
    } else {
      fmt::print("read {} MiB with {} threads: best {:.2f} GB/s, median {:.2f} GB/s\n", mebibytes, threads,
                 rate.best_gb_per_s, rate.median_gb_per_s);
    }
  } catch (const std::bad_alloc&) {
    std::cerr << "bandwidth: no memory for --mib " << mebibytes << "; give a smaller size\n";
    return 3;
  }
  return 0;
}
