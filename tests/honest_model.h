// The model of a case behind the API of OpenAI, answered honestly by our own static engine and backend cpu.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "assay/status.h"

namespace assay::tests {

// Answers requests of completions with texts, token ids, logprobs, top-n and logprobs of the prompt (the list
// prompt_logprobs; an echo is refused), greedy or drawn, cut at stop words. For one request at a time.
class HonestModel {
 public:
  // Opens the checkpoint of the case in `folder`; or the one in `checkpoint`, which has the same shape.
  static Result<std::unique_ptr<HonestModel>> open(const std::string& folder, const std::string& checkpoint = "");
  ~HonestModel();

  // The body of the answer; an error object where it fails.
  std::string answer(const std::string& body);

 private:
  struct Opened;
  explicit HonestModel(std::unique_ptr<Opened> opened);
  std::unique_ptr<Opened> opened_;
};

// Writes the checkpoint in `from` to `to` with the first half of every tensor whose name ends with `name` set to zero.
// Fails where there is none.
Status spoil_checkpoint(const std::string& from, const std::filesystem::path& to, const std::string& name);

}  // namespace assay::tests
