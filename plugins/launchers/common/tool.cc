#include "plugins/launchers/common/tool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "core/command/command.h"

extern char** environ;  // NOLINT: POSIX names it

namespace assay::launchers {
namespace {

constexpr size_t kMostWords = 1000;  // bytes of a tool's output in a message

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Lines joined with "; ", without blanks at their ends and control characters.
std::string one_line(const std::string& text) {
  std::istringstream lines(text);
  std::string made;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (line.empty()) continue;
    made += (made.empty() ? "" : "; ") + line;
  }
  for (char& c : made) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return made.substr(0, kMostWords);
}

}  // namespace

std::string ToolOutput::words() const {
  if (timed_out) return "no answer in time";
  std::string said = one_line(err);
  if (said.empty()) said = one_line(out);
  return said.empty() ? "exit code " + std::to_string(code) : said;
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> made;
  for (char** pair = environ; pair != nullptr && *pair != nullptr; ++pair) {
    const std::string text = *pair;
    const size_t equals = text.find('=');
    if (equals != std::string::npos && equals > 0) made[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return made;
}

Result<ToolOutput> run_tool(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                            const std::filesystem::path& folder) {
  static std::atomic<uint64_t> count{0};
  const std::string base = (folder / ("tool." + std::to_string(::getpid()) + "." + std::to_string(count++))).string();
  command::CommandOptions options;
  options.argv = argv;
  options.environment = own_environment();
  options.output = base + ".out";
  options.errors = base + ".err";
  options.time_limit = limit;
  options.kill_grace = std::chrono::milliseconds(500);
  const Result<command::CommandEnd> end = command::run_command(options);
  ToolOutput output;
  if (end) {
    output.timed_out = end->limit == command::Limit::kTime;
    output.code = end->signal != 0 ? 128 + end->signal : end->code;
    output.out = contents(options.output);
    output.err = contents(options.errors);
  }
  std::error_code ignored;
  std::filesystem::remove(options.output, ignored);
  std::filesystem::remove(options.errors, ignored);
  if (!end) return end.status();
  return output;
}

Status write_script(const std::filesystem::path& file, const std::string& text) {
  const auto failed = [&] { return infra(file.string() + ": cannot be written: " + std::strerror(errno)); };
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRWXU);
  if (fd < 0) return failed();
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const Status status = failed();
      ::close(fd);
      return status;
    }
    done += static_cast<size_t>(n);
  }
  if (::close(fd) != 0) return failed();
  return {};
}

}  // namespace assay::launchers
