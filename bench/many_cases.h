// Folders full of small test cases, for the benchmarks of listing and replaying.
#pragma once

#include <filesystem>

namespace assay::bench {

// Writes `count` cases below `folder`, each with a model_config.yaml of about 60 lines and a golden file of two
// requests with 30 tokens and logprobs, judged by generated_tokens, generated_text and logprobs through the replay
// engine. Throws std::runtime_error when a file cannot be written.
void write_cases(const std::filesystem::path& folder, int count);

}  // namespace assay::bench
