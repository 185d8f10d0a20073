#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/openai/engine.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  namespace openai = assay::engines::openai;
  return assay::engines::engine_plugin<openai::OpenaiEngine>(
      abi_major, host,
      {.name = "openai",
       .description = "asks a server that speaks the API of OpenAI: vLLM, SGLang, TensorRT-LLM, llama.cpp",
       .capabilities = openai::kOpenaiCapabilities,
       .options_schema = openai::kOpenaiOptionsSchema});
}
