#include "core/run/case_digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/golden/digest.h"
#include "core/run/event_file.h"

namespace assay::run {
namespace {

constexpr size_t kEnd = size_t{32} << 10;

// Up to `size` bytes at `offset`, appended to `text`.
void read_at(int fd, size_t size, off_t offset, std::string* text) {
  const size_t begin = text->size();
  text->resize(begin + size);
  size_t got = 0;
  while (got < size) {
    const ssize_t n = ::pread(fd, text->data() + begin + got, size - got, offset + static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  text->resize(begin + got);
}

// A name, a size, and what the file holds; of a larger one its digest, or how it begins and ends.
void add_file(const std::string& name, const std::string& path, bool whole, std::string* text) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    *text += fmt::format("{} absent\n", name);
    return;
  }
  const auto size = static_cast<size_t>(info.st_size);
  *text += fmt::format("{} {}\n", name, size);
  if (size <= 2 * kEnd) return read_at(fd.get(), size, 0, text);
  if (whole) {
    const Result<std::string> content = digest_of_file(path);
    *text += content ? *content : "unreadable";
    return;
  }
  read_at(fd.get(), kEnd, 0, text);
  read_at(fd.get(), kEnd, static_cast<off_t>(size - kEnd), text);
}

void add_files(const TestCase& test, bool whole, std::string* text) {
  add_file("model_config.yaml", test.config, whole, text);
  for (const GoldenFile& golden : test.goldens) add_file(golden.file, test.dir + "/" + golden.file, whole, text);
}

// Nothing where the case asks for nothing itself.
void add_settings(const TestCase& test, const CaseSettings& own, std::string* text) {
  const std::string settings =
      fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}", own.environment_name, own.platform, own.engine, own.repeat,
                  own.timeout.count(), own.settled ? to_string(*own.settled) : std::string_view(), own.reason);
  if (settings == "\t\t\t0\t0\t\t") return;
  *text += fmt::format("\nrecipe {}\n{}", settings, test.config_text);
}

std::string digest(const std::string& text) {
  const Result<std::string> made = digest_of_text(text);
  return made ? *made : "";
}

}  // namespace

std::string case_digest(const TestCase& test, const CaseSettings& own) {
  std::string text;
  add_files(test, true, &text);
  add_settings(test, own, &text);
  return digest(text);
}

std::string case_list_digest(const std::vector<const TestCase*>& cases, const std::vector<CaseSettings>& own) {
  std::string digests;
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) {
    text = cases[i]->name + "\n";
    add_files(*cases[i], false, &text);
    if (!own.empty()) add_settings(*cases[i], own[i], &text);
    digests += digest(text);
  }
  return digest(digests);
}

}  // namespace assay::run
