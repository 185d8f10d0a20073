// The steps of resolve_model.
#pragma once

#include <initializer_list>
#include <string_view>

#include "backends/model/config/resolve_model.h"

namespace assay::model {

// Fills config and origins of one model from effective arguments. Used once.
class ModelBuilder {
 public:
  ModelBuilder(const EffectiveArgs& args, int64_t tokenizer_vocab_size, ResolvedModel& model)
      : args_(args), tokenizer_vocab_size_(tokenizer_vocab_size), model_(model), config_(model.config) {}

  Status build();  // kInvalid, naming the arguments

 private:
  void build_sizes();
  void build_attention();
  void build_norm_and_activation();
  void build_vocabulary();
  void build_moe();
  void build_moe_layers();

  void fail(const std::string& message);
  int required(std::string_view name, const char* option);
  // Notes that `field` was decided by the first of `sources` that is set.
  void came_from(const char* field, std::initializer_list<std::string_view> sources);
  void fill_values();

  ArgReader args_;
  int64_t tokenizer_vocab_size_;
  ResolvedModel& model_;
  ModelConfig& config_;
  Status status_;
};

}  // namespace assay::model
