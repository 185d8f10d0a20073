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
#include <utility>

#include "core/command/environment.h"

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

struct Tool::Files {
  explicit Files(const std::string& base) : out(base + ".out"), err(base + ".err") {}
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove(out, ignored);
    std::filesystem::remove(err, ignored);
  }

  const std::filesystem::path out;
  const std::filesystem::path err;
};

Tool::Tool(std::shared_ptr<Files> files, command::Command command)
    : files_(std::move(files)), command_(std::move(command)) {}

Result<Tool> Tool::start(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                         const std::filesystem::path& folder) {
  static std::atomic<uint64_t> count{0};
  const std::string name = "tool." + std::to_string(::getpid()) + "." + std::to_string(count++);
  const auto files = std::make_shared<Files>((folder / name).string());
  command::CommandOptions options;
  options.argv = argv;
  options.environment = command::own_environment();
  options.output = files->out;
  options.errors = files->err;
  options.time_limit = limit;
  options.kill_grace = std::chrono::milliseconds(500);
  Result<command::Command> started = command::Command::start(std::move(options));
  if (!started) return started.status();
  return Tool(files, *std::move(started));
}

ToolOutput Tool::output(const command::CommandEnd& end) const {
  return {.code = end.signal != 0 ? 128 + end.signal : end.code,
          .timed_out = end.limit == command::Limit::kTime,
          .out = contents(files_->out),
          .err = contents(files_->err)};
}

std::optional<ToolOutput> Tool::poll() {
  const std::optional<command::CommandEnd> end = command_.poll();
  if (!end) return std::nullopt;
  return output(*end);
}

ToolOutput Tool::wait() { return output(command_.wait()); }

Result<ToolOutput> run_tool(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                            const std::filesystem::path& folder) {
  Result<Tool> tool = Tool::start(argv, limit, folder);
  if (!tool) return tool.status();
  return tool->wait();
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
