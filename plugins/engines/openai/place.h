// A server and what was found out about it, shared by the engines of a process.
#pragma once

#include <memory>
#include <string>

#include "assay/status.h"
#include "plugins/engines/openai/probe.h"
#include "plugins/engines/openai/server.h"

namespace assay::engines::openai {

struct Place {
  std::shared_ptr<Server> server;  // null: it runs without us
  std::string url;
  Found found;

  // kInternal once a server of ours has ended.
  Status check() const { return server ? server->check() : Status(); }
};

// The place for these options: an earlier one, or one that is started and probed now. `json`: the options as given;
// their case_time makes no difference. A server of ours that has ended is started anew. Equal options of the server
// alone share the server.
Result<std::shared_ptr<Place>> place_for(const OpenaiOptions& options, const std::string& json, const Host& host);

}  // namespace assay::engines::openai
