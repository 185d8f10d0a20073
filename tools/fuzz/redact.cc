// Secrets of an environment are in no text that leaves, nor in a file that was cleaned. Input: secret, NUL, text.
#include "core/command/redact.h"

#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = assay::fuzz::text_of(data, size);
  const size_t zero = input.find('\0');
  if (zero == std::string_view::npos) return 0;
  const std::string secret(input.substr(0, zero));
  const std::string_view text = input.substr(zero + 1);
  assay::command::Redactor redactor;
  redactor.add("SOME_KEY", secret);
  const std::string clean = redactor.text(text);
  const bool stars = secret.find('*') != std::string::npos;  // "***" beside a star may read as one that holds stars
  for (const std::string& spelling : redactor.spellings()) {
    assay::fuzz::require(stars || clean.find(spelling) == std::string::npos, "no secret is left");
  }
  assay::fuzz::require(!redactor.empty() || clean == text, "a text without secrets stays");
  assay::fuzz::require(redactor.value("SOME_KEY", "ab") == assay::command::kRedacted, "a secret name shows no value");
  if (size > 2048 || stars) return 0;
  static const assay::fuzz::Folder kFolder;
  const auto path = kFolder.write("log", text);
  assay::fuzz::require(redactor.file(path).ok(), "a file can be cleaned");
  std::ifstream file(path, std::ios::binary);
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& spelling : redactor.spellings()) {
    assay::fuzz::require(kept.find(spelling) == std::string::npos, "no secret is left in the file");
  }
  return 0;
}
