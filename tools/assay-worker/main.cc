// assay-worker PLAN EVENTS: holds one engine and runs the cases of one plan. Started by the runner, not by people.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/command/standard_streams.h"
#include "core/run/secrets.h"
#include "core/run/worker.h"

int main(int argc, char** argv) {
  assay::command::occupy_standard_streams();
  if (argc != 3) {
    std::fputs("usage: assay-worker PLAN.json EVENTS.jsonl   (started by 'assay run')\n", stderr);
    return 2;
  }
  const char* given = std::getenv(assay::run::kSecretsVariable);
  const std::string secrets = given == nullptr ? "" : given;
  ::unsetenv(assay::run::kSecretsVariable);  // no business of engines
  return assay::run::run_worker(argv[1], argv[2], secrets);
}
